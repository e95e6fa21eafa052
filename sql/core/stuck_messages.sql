-- As the owner, because views of ops ask it: what a view calls runs as whoever reads the view.
create function core.stuck_messages()
returns setof uuid
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id
  from app.messages m
  where m.status = 'queued' and m.mode = 'live'
    -- The sandbox keeps a message waiting because its caller chose that by the recipient.
    and not m.is_sandbox and m.provider is distinct from 'sandbox'
    -- A hand-over is given up after 24 hours of trying: nothing older than two days can be queued,
    -- and the bound lets this pass over most partitions.
    and m.id >= core.first_id_at(core.now() - interval '2 days')
    and coalesce(m.scheduled_at, m.created_at) < core.now() - interval '1 minute'
  union
  -- A scheduled SMS may have been accepted long before, and is found by what is to release it: no
  -- later than its next attempt, which is within some hour.
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
  'Live messages that should have been sent more than a minute ago: accepted then, or scheduled for then. Not those that the sandbox keeps waiting.';
