create function core.job_of(m app.messages, at_most bigint default null)
returns graphile_worker._private_jobs
language sql stable
as $$
  -- A scan, because an index would slow down every send.
  select s.job
  from (select j as job from graphile_worker._private_jobs j limit at_most) s
  join graphile_worker._private_tasks t on t.id = (s.job).task_id
  where t.identifier = 'send_' || m.channel and (s.job).payload ->> 'id' = m.id::text
  limit 1
$$;

comment on function core.job_of is
  'Returns the job that will attempt to send a message; null if there is none, or none among at_most jobs.';
