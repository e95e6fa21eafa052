create function core.message_jobs()
returns table (
  message_id uuid, job_id bigint, priority smallint, run_at timestamptz, locked_at timestamptz, is_available boolean
)
language sql stable
as $$
  -- A scan, because an index would slow down every send.
  select i.id::uuid, j.id, j.priority, j.run_at, j.locked_at, j.is_available
  from graphile_worker._private_jobs j
  join graphile_worker._private_tasks t on t.id = j.task_id
  cross join lateral json_array_elements_text(
    case json_typeof(j.payload) when 'array' then j.payload else json_build_array(j.payload -> 'id') end) as i (id)
  where t.identifier = any (core.send_tasks('email') || core.send_tasks('sms'))
$$;

comment on function core.message_jobs is
  'Returns each message that has a job, with that job; a job of several messages once for each.';
