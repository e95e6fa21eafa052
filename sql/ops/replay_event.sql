create function ops.replay_event(event text, endpoint text default null)
returns bigint
language plpgsql volatile security definer
set search_path = ''
as $$
declare
  v_event app.webhook_events := core.find_webhook_event(event);
  v_endpoint app.webhook_endpoints;
  v_count bigint := 0;
begin
  if v_event.id < core.first_replayable_id() then
    raise exception 'the event is of %; events can be replayed for 30 days', core.iso(v_event.occurred_at);
  elsif v_event.message_id is null then
    raise exception 'the event is a test event, which is not replayed; ops.send_test_event sends another';
  end if;
  if endpoint is null then
    for v_endpoint in
      select p.* from app.webhook_endpoints p
      where p.organisation_id = v_event.organisation_id and v_event.type = any (p.event_types) and p.disabled_at is null
      order by p.id
    loop
      v_count := v_count + core.replay(v_endpoint, array[v_event.id]);
    end loop;
    return v_count;
  end if;
  v_endpoint := core.find_webhook_endpoint(endpoint);
  if v_endpoint.organisation_id <> v_event.organisation_id then
    raise exception 'the endpoint is of another organisation than the event'
      using hint = format('select id, url from ops.webhook_endpoints where organisation = %L', core.encode_id('org', v_event.organisation_id));
  end if;
  perform core.check_is_enabled(v_endpoint);
  return core.replay(v_endpoint, array[v_event.id]);
end
$$;

comment on function ops.replay_event is
  'Deliver an event of the last 30 days again, with the same id and body and all attempts before it: to one endpoint, whatever types it chose, or to all of the organisation that are enabled and chose its type. Answers to how many.';
