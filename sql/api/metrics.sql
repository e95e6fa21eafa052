create function api.metrics()
returns setof api.metric
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  -- Reads only the next jobs by their index, so that the cost does not depend on the number of jobs.
  with next_jobs as materialized (
    select j.task_id, j.run_at, j.priority, core.job_size(j.payload) as size
    from graphile_worker._private_jobs j
    where j.is_available
    order by j.priority, j.run_at
    limit 10000
  )
  select 'queue_jobs', jsonb_build_object('task', t.identifier, 'state', s.state), case s.state
      when 'waiting' then coalesce(sum(j.size) filter (where j.run_at <= now()), 0)
      else coalesce(sum(j.size) filter (where j.run_at > now()), 0)
    end::double precision
  from graphile_worker._private_tasks t
  cross join (values ('waiting'), ('later')) as s (state)
  left join next_jobs j on j.task_id = t.id
  group by t.identifier, s.state
  union all
  -- Without messages behind 1,000 others of their organisation, which wait by design (core.priority).
  select 'queue_age_seconds', jsonb_build_object('task', t.identifier),
    coalesce(greatest(0, extract(epoch from now() - min(j.run_at))), 0)
  from graphile_worker._private_tasks t
  left join next_jobs j on j.task_id = t.id and j.priority < 10
  group by t.identifier
  union all
  select 'messages_waiting', '{}', coalesce(sum(a.messages_accepted - d.messages_dequeued), 0)
  from app.allowances a
  join app.counters d on d.organisation_id = a.organisation_id
  union all
  select 'due_messages_late_seconds', '{}',
    coalesce(greatest(0, extract(epoch from core.now() - min(d.due_at))), 0)
  from app.due_messages d
  union all
  select 'clock_late_seconds', jsonb_build_object('task', t.name),
    greatest(0, extract(epoch from now() - ran.at - core.schedule_interval(t.schedule)))
  from app.scheduled_tasks t
  cross join lateral (
    select coalesce(
      (select r.started_at from app.task_runs r where r.task = t.name and r.error is null order by r.id desc limit 1),
      -- A task that has never succeeded counts from its first failure.
      (select r.started_at from app.task_runs r where r.task = t.name order by r.id limit 1)) as at
  ) ran
  where ran.at is not null and core.schedule_interval(t.schedule) is not null
  union all
  select 'provider_failing_seconds', jsonb_build_object('provider', h.provider),
    greatest(0, extract(epoch from core.now() - h.failing_since))
  from core.failing_providers() h
  union all
  select 'processes', jsonb_build_object('role', r.role), count(p.*)::double precision
  from unnest(array['api', 'worker', 'clock']) as r (role)
  left join app.processes p on r.role = any (p.roles) and core.lock_holder(p.pool_id) is not null
  group by r.role
  union all
  select 'connections', jsonb_build_object('application', a.application_name, 'state', coalesce(a.state, 'unknown')),
    count(*)::double precision
  from pg_stat_activity a
  where a.datname = current_database() and a.application_name like 'postgram%'
  group by a.application_name, a.state
  union all
  select 'connections_all', '{}', count(*)::double precision
  from pg_stat_activity a
  where a.datid is not null
  union all
  select 'connections_limit', '{}', current_setting('max_connections')::double precision
$$;

comment on function api.metrics is
  'Returns the database gauges for Prometheus: queues, clock, processes and connections. The cost does not grow with their number.';
