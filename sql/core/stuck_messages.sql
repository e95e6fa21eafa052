create function core.stuck_messages()
returns setof uuid
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id
  from app.messages m
  where m.status = 'queued' and m.mode = 'live'
    -- The sandbox holds a message only if its caller chose a recipient that does so.
    and not m.is_sandbox and m.provider is distinct from 'sandbox'
    -- A message fails permanently after 24 hours of attempts, so none older than two days is queued. The
    -- bound excludes most partitions.
    and m.id >= core.first_id_at(core.now() - interval '2 days')
    and coalesce(m.scheduled_at, m.created_at) < core.now() - interval '1 minute'
  union
  -- A scheduled SMS may have been accepted long before. It is found by its row in app.due_messages, due at
  -- its next attempt within 90 minutes, or by its job.
  select m.id
  from (
    select d.message_id as id
    from app.due_messages d
    where d.due_at < core.now() + interval '90 minutes' or d.due_at is null
    union all
    select (j.payload ->> 'id')::uuid
    from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = 'send_sms'
  ) waiting
  join app.messages m on m.id = waiting.id
  where m.status in ('queued', 'scheduled') and m.scheduled_at < core.now() - interval '1 minute'
    and not m.is_sandbox and m.provider is distinct from 'sandbox'
$$;

comment on function core.stuck_messages is
  'Returns the IDs of live messages that were queued or scheduled for more than a minute ago and are not sent. Skips messages that the sandbox holds on purpose.';
