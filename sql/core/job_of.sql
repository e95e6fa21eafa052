create function core.job_of(m app.messages)
returns graphile_worker._private_jobs
language sql stable
as $$
  -- A scan, because only operators call this, and an index would slow down every send.
  select j
  from graphile_worker._private_jobs j
  join graphile_worker._private_tasks t on t.id = j.task_id
  where t.identifier = 'send_' || m.channel and j.payload ->> 'id' = m.id::text
  limit 1
$$;

comment on function core.job_of is
  'Returns the job that will attempt to send a message; null if there is none.';
