create function ops.create_webhook_endpoint(organisation text, url text, event_types text[], out id text, out secret text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_types app.webhook_event_type[] := core.check_event_types(create_webhook_endpoint.event_types);
  v_id uuid := core.new_id(core.now());
begin
  perform core.check_webhook_url(create_webhook_endpoint.url);
  -- Locked, so that two concurrent calls cannot both create the twentieth endpoint. The limit exists because
  -- each event costs a row and a POST request for each endpoint.
  perform from app.organisations o where o.id = v_organisation for no key update;
  if (select count(*) from app.webhook_endpoints p where p.organisation_id = v_organisation) >= 20 then
    raise exception 'the organisation has 20 webhook endpoints, the maximum; delete one first'
      using hint = format('select id, url, state from ops.webhook_endpoints where organisation = %L',
        core.encode_id('org', v_organisation));
  end if;
  secret := core.make_secret();
  insert into app.webhook_endpoints (id, organisation_id, url, event_types, secret, created_at)
  values (v_id, v_organisation, create_webhook_endpoint.url, v_types, create_webhook_endpoint.secret, core.now());
  id := core.encode_id('we', v_id);
  perform core.audit('create_webhook_endpoint', v_organisation, id, null,
    jsonb_build_object('url', create_webhook_endpoint.url, 'event_types', v_types));
end
$$;

comment on function ops.create_webhook_endpoint is
  'Create a webhook endpoint; return its ID and signing secret. The secret is shown only once. Postgram posts the organisation''s events of the given types to the https URL. An organisation can have at most 20 endpoints.';
