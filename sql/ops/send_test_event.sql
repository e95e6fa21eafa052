create function ops.send_test_event(endpoint text, event_type text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.find_webhook_endpoint(endpoint);
  v_type app.webhook_event_type := (core.check_event_types(array[send_test_event.event_type]))[1];
  v_at timestamptz := core.now();
  v_id uuid := core.new_id(v_at);
begin
  perform core.check_is_enabled(v_endpoint);
  insert into app.webhook_events (id, organisation_id, type, message_id, occurred_at, body)
  values (v_id, v_endpoint.organisation_id, v_type, null, v_at,
    core.event_body(v_id, v_type, v_at, core.sample_message(v_type)));
  perform core.replay(v_endpoint, array[v_id]);
  perform core.audit('send_test_event', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id), null,
    jsonb_build_object('event', core.encode_id('evt', v_id), 'type', v_type));
  return core.encode_id('evt', v_id);
end
$$;

comment on function ops.send_test_event is
  'Send a sample event of a type to a webhook endpoint. It is delivered like a real event, also if the endpoint did not choose the type. Returns the event''s ID; ops.why shows the result.';
