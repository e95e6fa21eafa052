create function core.why_delivery(event app.webhook_events, endpoint_id uuid)
returns text
language plpgsql stable
as $$
declare
  v_id constant text := core.encode_id('we', why_delivery.endpoint_id);
  -- A test event cannot be replayed.
  v_replay constant text := case when event.message_id is null then format('select ops.send_test_event(%L, %L)', v_id, event.type)
    else format('select ops.replay_event(%L, %L)', core.encode_id('evt', event.id), v_id) end;
  v_endpoint app.webhook_endpoints;
  v_waiting app.webhook_deliveries;
  v_delivered app.webhook_attempts;
  v_last app.webhook_attempts;
  v_replayed text := '';
  v_deliveries_before bigint;
begin
  select p.* into v_endpoint from app.webhook_endpoints p where p.id = why_delivery.endpoint_id;
  select d.* into v_waiting from app.webhook_deliveries d
  where d.endpoint_id = why_delivery.endpoint_id and d.event_id = event.id;
  select a.* into v_last from app.webhook_attempts a
  where a.endpoint_id = why_delivery.endpoint_id and a.event_id = event.id
  order by a.started_at desc limit 1;
  select a.* into v_delivered from app.webhook_attempts a
  where a.endpoint_id = why_delivery.endpoint_id and a.event_id = event.id and a.error is null
  order by a.started_at desc limit 1;

  if v_delivered.event_id is not null then
    if v_waiting.event_id is null or v_endpoint.disabled_at is not null then
      return format('%s: delivered at %s by attempt %s.', v_id, core.iso(v_delivered.started_at), v_delivered.attempt);
    end if;
    v_replayed := format(' was delivered at %s, is being replayed and', core.iso(v_delivered.started_at));
  end if;

  if v_endpoint.id is null then
    return format('%s: not delivered before the endpoint was deleted.', v_id);
  elsif v_endpoint.disabled_at is not null then
    return format('%s: not delivered; the endpoint has been disabled since %s (%s); %s delivers it.',
      v_id, core.iso(v_endpoint.disabled_at), rtrim(coalesce(v_endpoint.disabled_reason, 'failing'), '.'),
      case when event.message_id is null or event.occurred_at < v_endpoint.created_at then 'after ops.enable_webhook_endpoint, ' || v_replay
        else format('select ops.enable_webhook_endpoint(%L, replay => true)', v_id) end);
  elsif v_waiting.event_id is null and v_last.event_id is null then
    return format('%s: not delivered, because the endpoint %s; %s delivers it.', v_id,
      case when event.occurred_at < v_endpoint.created_at then 'was created later'
        else format('was disabled or had not chosen %s', event.type) end, v_replay);
  elsif v_waiting.event_id is null then
    return format('%s: not delivered; delivery stopped after %s at %s (%s); %s retries it.', v_id,
      case v_last.attempt when 1 then '1 attempt,' else v_last.attempt || ' attempts, the last' end,
      core.iso(v_last.started_at), rtrim(v_last.error, '.'), v_replay);
  elsif v_waiting.due_at > core.now() then
    return format('%s: the event%s waits for attempt %s at %s because the last attempt failed: %s.',
      v_id, v_replayed, v_waiting.attempts + 1, core.iso(v_waiting.due_at), rtrim(coalesce(v_last.error, 'no reason given'), '.'));
  elsif not core.has_process('worker') then
    return format('%s: the event%s waits because no worker is running; start one with the command "start" or "start --only worker".', v_id, v_replayed);
  end if;

  select count(*) into v_deliveries_before
  from (
    select from app.webhook_deliveries d
    where d.endpoint_id = v_endpoint.id and d.due_at < v_waiting.due_at
    limit 100001
  ) earlier;
  return format('%s: the event%s has been due for attempt %s since %s, behind %s%s.', v_id, v_replayed, v_waiting.attempts + 1,
    core.iso(v_waiting.due_at), case when v_deliveries_before > 100000 then 'more than 100 000 deliveries'
      else core.counted(v_deliveries_before, 'delivery', 'deliveries') end,
    coalesce('; the endpoint has failed since ' || core.iso(v_endpoint.failing_since) || ': ' || rtrim(v_endpoint.last_error, '.'), ''));
end
$$;

comment on function core.why_delivery is 'Returns the sentence of ops.why about the delivery of a webhook event to one endpoint.';
