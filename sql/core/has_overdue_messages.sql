create function core.has_overdue_messages()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
-- For psql: to compile the plan takes longer than to run it.
set jit = off
as $$
  -- One scan of the jobs: no index finds the job of a message.
  with job as materialized (
    select j.message_id, j.run_at, j.locked_at, j.priority
    from core.message_jobs() j
  )
  select exists (
    select
    from core.stuck_messages() s (id)
    -- The limit makes the plan look up each message by its ID.
    cross join lateral (select m.* from app.messages m where m.id = s.id limit 1) m
    join app.organisations o on o.id = m.organisation_id
    left join app.due_messages d on d.message_id = m.id
    left join job j on j.message_id = m.id
    where o.state = 'active'
      and coalesce(m.scheduled_at, m.created_at) < core.now() - interval '5 minutes'
      and (d.message_id is null or d.due_at < core.now() - interval '5 minutes')
      -- A message behind 1,000 others of its organisation waits by design (core.priority).
      and (j.message_id is null
        or j.locked_at is null and j.run_at < now() - interval '5 minutes' and j.priority < 10)
  )
$$;

comment on function core.has_overdue_messages is
  'Returns whether a message of an active organisation should have been attempted more than 5 minutes ago. Messages that wait for a retry, or behind 1,000 of their own organisation, do not count.';
