create function api.dashboard_webhook(
  session text, organisation text, endpoint text, before text default null,
  since timestamptz default null, until timestamptz default null
)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- To plan for all partitions takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_organisation uuid := core.member_of(dashboard_webhook.session, dashboard_webhook.organisation);
  v_endpoint app.webhook_endpoints := core.own_webhook_endpoint(v_organisation, dashboard_webhook.endpoint);
  v_before uuid := coalesce(core.decode_id('evt', dashboard_webhook.before), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
begin
  return jsonb_build_object(
    'endpoint', core.webhook_endpoint_object(v_endpoint),
    'events', coalesce((
      with recursive event as (
        -- From event to event by the keys of both tables, as an event may have many attempts.
        select v_before as id, 0 as place
        union all
        select greatest(
          (select a.event_id from app.webhook_attempts a
            where a.endpoint_id = v_endpoint.id and a.event_id < e.id order by a.event_id desc limit 1),
          (select d.event_id from app.webhook_deliveries d
            where d.endpoint_id = v_endpoint.id and d.event_id < e.id order by d.event_id desc limit 1)),
          e.place + 1
        from event e
        where e.id is not null and e.place <= core.page_rows()
      )
      select jsonb_agg(jsonb_build_object(
          'id', core.encode_id('evt', e.id), 'type', v.type, 'occurredAt', core.iso(v.occurred_at),
          'state', s.state, 'dueAt', s.due_at,
          'attempt', l.attempt, 'attemptedAt', core.iso(l.started_at), 'status', l.status, 'error', l.error)
        order by e.id desc)
      from event e
      left join app.webhook_events v on v.id = e.id
      left join lateral (
        select a.* from app.webhook_attempts a
        where a.endpoint_id = v_endpoint.id and a.event_id = e.id
        order by a.started_at desc
        limit 1
      ) l on true
      cross join lateral core.delivery_state(v_endpoint, e.id, l) s
      where e.place > 0 and e.id is not null), '[]'),
    'left', case when dashboard_webhook.since is not null and dashboard_webhook.until is not null then (
      select jsonb_build_object('deliveries', count(*), 'failed', count(*) filter (where d.attempts > 0))
      from (
        select d.attempts
        from app.webhook_deliveries d
        where d.endpoint_id = v_endpoint.id and v_endpoint.disabled_at is null
          and d.event_id between core.first_id_at(dashboard_webhook.since) and core.first_id_at(dashboard_webhook.until)
        limit 10001
      ) d) end);
end
$$;

comment on function api.dashboard_webhook is
  'Returns a webhook endpoint with a page of its events and one more (core.page_rows), newest first, with IDs below before if it is given: {endpoint, events, left}. endpoint: as core.webhook_endpoint_object. events: [{id, type, occurredAt, state, dueAt, attempt, attemptedAt, status, error}] with the last attempt. left: the deliveries of the events from since until until that wait, {deliveries, failed}, counted up to 10 001; null without both. Refuses as core.member_of does, and with not_found.';
