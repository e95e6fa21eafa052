create function ops.enable_webhook_endpoint(endpoint text, replay boolean default false)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.find_webhook_endpoint(endpoint);
  v_before jsonb;
  v_first_id uuid := greatest(core.first_replayable_id(), core.first_id_at(v_endpoint.created_at));
  v_recent_id uuid := greatest(v_first_id, core.first_id_at(core.now() - interval '1 minute'));
  v_last_id uuid := core.first_id_at(core.now() + interval '1 day');
  v_missed bigint;
begin
  if replay is null then
    raise exception 'replay must be true or false';
  end if;
  -- The lock makes api.clear_deliveries wait, which removes the deliveries of disabled endpoints.
  select jsonb_build_object('disabled_reason', coalesce(p.disabled_reason, 'failing')) into v_before
  from app.webhook_endpoints p
  where p.id = v_endpoint.id and p.disabled_at is not null
  for no key update;
  -- Not if another session enabled the endpoint while this one waited: its deliveries are due now.
  if found then
    delete from app.webhook_deliveries d where d.endpoint_id = v_endpoint.id;
  end if;
  if not replay then
    v_missed := (select count(*) from core.events_for(v_endpoint, v_first_id, v_last_id, true));
  else
    v_missed := core.replay(v_endpoint, array(select core.events_for(v_endpoint, v_first_id, v_last_id, true)));
  end if;

  update app.webhook_endpoints p
  set disabled_at = null, disabled_reason = null, failing_since = null, warned_at = null, last_error = null
  where p.id = v_endpoint.id and p.disabled_at is not null;

  if replay then
    -- Events recorded since the first replay were recorded for a disabled endpoint, without a delivery.
    perform pg_advisory_xact_lock(core.enabling_lock());
    v_missed := v_missed + core.replay(v_endpoint, array(
      select core.events_for(v_endpoint, v_recent_id, v_last_id, true)
      except
      select d.event_id from app.webhook_deliveries d where d.endpoint_id = v_endpoint.id and d.event_id >= v_recent_id));
  end if;
  perform core.audit('enable_webhook_endpoint', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id),
    coalesce(v_before, '{"disabled_reason": null}'),
    '{"disabled_reason": null}' || case when replay and v_missed > 0
      then jsonb_build_object('replayed', v_missed) else '{}' end);
  return v_missed;
end
$$;

comment on function ops.enable_webhook_endpoint is
  'Enable a disabled webhook endpoint. Returns the number of missed events: events of its types from the last 30 days, since it was created, that were not delivered. With replay => true they are delivered now; a later call can also replay them.';
