create function api.dashboard_webhook_event(session text, organisation text, event text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- To plan for all partitions takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_organisation uuid := core.member_of(dashboard_webhook_event.session, dashboard_webhook_event.organisation);
  v_event app.webhook_events := core.own_webhook_event(v_organisation, dashboard_webhook_event.event);
begin
  return jsonb_build_object(
    'id', core.encode_id('evt', v_event.id),
    'type', v_event.type,
    'occurredAt', core.iso(v_event.occurred_at),
    'message', core.encode_id(case when v_event.type::text like 'email.%' then 'em' else 'sm' end, v_event.message_id),
    'body', v_event.body,
    'isReplayable', v_event.message_id is not null and v_event.id >= core.first_replayable_id(),
    'endpoints', coalesce((
      select jsonb_agg(jsonb_build_object(
          'id', core.encode_id('we', p.id), 'url', p.url, 'isDisabled', p.disabled_at is not null,
          'state', s.state, 'dueAt', s.due_at, 'attempts', coalesce(a.attempts, '[]'))
        order by p.id)
      from app.webhook_endpoints p
      left join lateral (
        select (array_agg(x.attempt order by (x.attempt).started_at desc))[1] as last,
          jsonb_agg(jsonb_build_object(
              'attempt', (x.attempt).attempt, 'startedAt', core.iso((x.attempt).started_at),
              'durationMs', (x.attempt).duration_ms, 'status', (x.attempt).status,
              'error', (x.attempt).error, 'response', (x.attempt).response)
            order by (x.attempt).started_at desc) as attempts
        from (
          select t as attempt
          from app.webhook_attempts t
          where t.endpoint_id = p.id and t.event_id = v_event.id
          order by t.started_at desc
          limit 50
        ) x
      ) a on true
      cross join lateral core.delivery_state(p, v_event.id, a.last) s
      where p.organisation_id = v_organisation), '[]'));
end
$$;

comment on function api.dashboard_webhook_event is
  'Returns a webhook event: {id, type, occurredAt, message, body, isReplayable, endpoints}. endpoints: every endpoint of the organisation with its newest 50 attempts, [{id, url, isDisabled, state, dueAt, attempts: [{attempt, startedAt, durationMs, status, error, response}]}]. message is null for a test event. Refuses as core.member_of does, and with not_found.';
