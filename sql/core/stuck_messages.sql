create function core.stuck_messages()
returns setof uuid
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- For psql: to compile the plan takes longer than to run it.
set jit = off
as $$
  with waiting as materialized (
    -- A message that waits has a job, or a row in app.due_messages, due at its next attempt within 90 minutes.
    select m.*
    from (
      select d.message_id as id
      from app.due_messages d
      where d.due_at < core.now() + interval '90 minutes' or d.due_at is null
      union
      select j.message_id
      from core.message_jobs() j
    ) w
    -- The limit makes the plan look up each message by its ID.
    cross join lateral (select m.* from app.messages m where m.id = w.id limit 1) m
    where m.status in ('queued', 'scheduled') and m.mode = 'live'
  ),
  candidate as (
    select w.* from waiting w
    union all
    -- Messages that wait without either, which is a bug. Only if the backlogs say that there are some, because
    -- the messages of two days are read for them. None older than that is queued: a message fails permanently
    -- after 24 hours of attempts.
    select m.*
    from app.messages m
    where m.status = 'queued' and m.mode = 'live'
      and m.id >= core.first_id_at(core.now() - interval '2 days')
      and not exists (select from waiting w where w.id = m.id)
      and (select count(*) from waiting w where w.status = 'queued' and w.scheduled_at is null) < (
        select sum(a.messages_accepted - c.messages_dequeued)
        from app.allowances a
        join app.counters c on c.organisation_id = a.organisation_id)
  )
  select c.id
  from candidate c
  where coalesce(c.scheduled_at, c.created_at) < core.now() - interval '1 minute'
    -- The sandbox holds a message only if its caller chose a recipient that does so.
    and not c.is_sandbox and c.provider is distinct from 'sandbox'
$$;

comment on function core.stuck_messages is
  'Returns the IDs of live messages that were queued or scheduled for more than a minute ago and are not sent. Skips messages that the sandbox holds on purpose. Its cost grows with the messages that wait, not with those that were sent.';
