create function ops.set_webhook_endpoint(endpoint text, url text default null, event_types text[] default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.hold_webhook_endpoint(endpoint);
  v_types app.webhook_event_type[];
begin
  if set_webhook_endpoint.url is null and set_webhook_endpoint.event_types is null then
    raise exception 'give url, event_types or both';
  end if;
  if set_webhook_endpoint.url is not null then
    perform core.check_webhook_url(set_webhook_endpoint.url);
    -- The new URL has not failed yet.
    update app.webhook_endpoints p
    set url = set_webhook_endpoint.url,
      failing_since = case when p.disabled_at is not null then p.failing_since end,
      warned_at = case when p.disabled_at is not null then p.warned_at end,
      last_error = case when p.disabled_at is not null then p.last_error end
    where p.id = v_endpoint.id and p.url <> set_webhook_endpoint.url;
  end if;
  if set_webhook_endpoint.event_types is not null then
    v_types := core.check_event_types(set_webhook_endpoint.event_types);
    update app.webhook_endpoints p set event_types = v_types where p.id = v_endpoint.id;
    delete from app.webhook_deliveries d
    using app.webhook_events e
    where d.endpoint_id = v_endpoint.id and e.id = d.event_id
      and e.message_id is not null and e.type <> all (v_types);
  end if;
  perform core.audit('set_webhook_endpoint', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id),
    jsonb_build_object('url', v_endpoint.url, 'event_types', v_endpoint.event_types),
    jsonb_build_object('url', coalesce(set_webhook_endpoint.url, v_endpoint.url),
      'event_types', coalesce(v_types, v_endpoint.event_types)));
end
$$;

comment on function ops.set_webhook_endpoint is
  'Change the URL or the event types of a webhook endpoint. Arguments left out stay as they are, and so does the secret. Waiting deliveries go to the new URL; those of types that are no longer chosen are removed. A new URL resets the failing state, but does not enable a disabled endpoint.';
