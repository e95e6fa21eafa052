create function ops.replay_event(event text, endpoint text default null)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event app.webhook_events := core.find_webhook_event(event);
  v_endpoint app.webhook_endpoints;
  v_endpoints app.webhook_endpoints[];
  v_count bigint;
begin
  if v_event.id < core.first_replayable_id() then
    raise exception 'the event occurred at %; events can be replayed for 30 days', core.iso(v_event.occurred_at);
  elsif v_event.message_id is null then
    raise exception 'the event is a test event and cannot be replayed; ops.send_test_event sends a new one';
  end if;
  if endpoint is null then
    v_endpoints := array(
      select p from app.webhook_endpoints p
      where p.organisation_id = v_event.organisation_id and v_event.type = any (p.event_types) and p.disabled_at is null
      order by p.id);
    perform core.add_deliveries(p, array[v_event.id]) from unnest(v_endpoints) p;
    perform core.restart_deliveries(p, array[v_event.id]) from unnest(v_endpoints) p;
    v_count := cardinality(v_endpoints);
    perform core.audit('replay_event', v_event.organisation_id, event, '{"deliveries": 0}', jsonb_build_object('deliveries', v_count));
    return v_count;
  end if;
  v_endpoint := core.find_webhook_endpoint(endpoint);
  if v_endpoint.organisation_id <> v_event.organisation_id then
    raise exception 'the endpoint belongs to another organisation than the event'
      using hint = format('select id, url from ops.webhook_endpoints where organisation = %L', core.encode_id('org', v_event.organisation_id));
  end if;
  perform core.check_is_enabled(v_endpoint);
  perform core.audit('replay_event', v_event.organisation_id, event, null, jsonb_build_object('endpoint', core.encode_id('we', v_endpoint.id)));
  return core.replay(v_endpoint, array[v_event.id]);
end
$$;

comment on function ops.replay_event is
  'Deliver a webhook event of the last 30 days again. The event keeps its ID and body and gets all six attempts again. With an endpoint it goes there, also if the endpoint did not choose its type. Otherwise it goes to all enabled endpoints that chose its type. Returns the number of endpoints.';
