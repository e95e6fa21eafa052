create function core.why_delivery(event app.webhook_events, endpoint_id uuid)
returns text
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_id constant text := core.encode_id('we', why_delivery.endpoint_id);
  -- A test event is no one's to replay.
  v_replay constant text := case when event.message_id is null then format('select ops.send_test_event(%L, %L)', v_id, event.type)
    else format('select ops.replay_event(%L, %L)', core.encode_id('evt', event.id), v_id) end;
  v_endpoint app.webhook_endpoints;
  v_waiting app.webhook_deliveries;
  v_arrived app.webhook_attempts;
  v_last app.webhook_attempts;
  v_again text := '';
  v_ahead bigint;
begin
  select p.* into v_endpoint from app.webhook_endpoints p where p.id = why_delivery.endpoint_id;
  select d.* into v_waiting from app.webhook_deliveries d
  where d.endpoint_id = why_delivery.endpoint_id and d.event_id = event.id;
  select a.* into v_last from app.webhook_attempts a
  where a.endpoint_id = why_delivery.endpoint_id and a.event_id = event.id
  order by a.started_at desc limit 1;
  select a.* into v_arrived from app.webhook_attempts a
  where a.endpoint_id = why_delivery.endpoint_id and a.event_id = event.id and a.error is null
  order by a.started_at desc limit 1;

  if v_arrived.event_id is not null then
    if v_waiting.event_id is null or v_endpoint.disabled_at is not null then
      return format('%s: it arrived at %s, at attempt %s.', v_id, core.iso(v_arrived.started_at), v_arrived.attempt);
    end if;
    v_again := format(' arrived at %s, is delivered again and', core.iso(v_arrived.started_at));
  end if;

  if v_endpoint.id is null then
    return format('%s: it had not arrived when the endpoint was deleted.', v_id);
  elsif v_endpoint.disabled_at is not null then
    return format('%s: it has not arrived, and the endpoint is disabled since %s (%s); %s delivers it.',
      v_id, core.iso(v_endpoint.disabled_at), rtrim(coalesce(v_endpoint.disabled_reason, 'failing'), '.'),
      case when event.message_id is null or event.occurred_at < v_endpoint.created_at then 'once it is enabled, ' || v_replay
        else format('select ops.enable_webhook_endpoint(%L, replay => true)', v_id) end);
  elsif v_waiting.event_id is null and v_last.event_id is null then
    return format('%s: it was not to go there, as the endpoint %s; %s delivers it.', v_id,
      case when event.occurred_at < v_endpoint.created_at then 'was made later'
        else format('was disabled or had not chosen %s', event.type) end, v_replay);
  elsif v_waiting.event_id is null then
    return format('%s: it rests after %s at %s (%s); %s tries again.', v_id,
      case v_last.attempt when 1 then '1 attempt,' else v_last.attempt || ' attempts, the last' end,
      core.iso(v_last.started_at), rtrim(v_last.error, '.'), v_replay);
  elsif v_waiting.due_at > core.now() then
    return format('%s: it%s waits for attempt %s at %s because the last one failed: %s.',
      v_id, v_again, v_waiting.attempts + 1, core.iso(v_waiting.due_at), rtrim(coalesce(v_last.error, 'no reason given'), '.'));
  elsif not core.has_process('worker') then
    return format('%s: it%s waits because no worker is running; start one with the command "start" or "start --only worker".', v_id, v_again);
  end if;

  select count(*) into v_ahead
  from (
    select from app.webhook_deliveries d
    where d.endpoint_id = v_endpoint.id and d.due_at < v_waiting.due_at
    limit 100001
  ) ahead;
  return format('%s: it%s is due for attempt %s since %s, behind %s others%s.', v_id, v_again, v_waiting.attempts + 1,
    core.iso(v_waiting.due_at), case when v_ahead > 100000 then 'more than 100 000' else v_ahead::text end,
    coalesce('; the endpoint fails since ' || core.iso(v_endpoint.failing_since) || ': ' || rtrim(v_endpoint.last_error, '.'), ''));
end
$$;

comment on function core.why_delivery is 'What ops.why says of a webhook event at one endpoint.';
