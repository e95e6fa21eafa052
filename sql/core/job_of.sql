create function core.job_of(m app.messages, at_most bigint default null)
returns graphile_worker._private_jobs
language sql stable
as $$
  -- A scan, because an index would slow down every send. A payload is searched as text, which is faster than to
  -- parse it and finds jobs of one message and of several.
  select s.job
  from (select j as job from graphile_worker._private_jobs j limit at_most) s
  join graphile_worker._private_tasks t on t.id = (s.job).task_id
  where t.identifier = any (core.send_tasks(m.channel)) and strpos((s.job).payload::text, m.id::text) > 0
  limit 1
$$;

comment on function core.job_of is
  'Returns the job that will attempt to send a message; null if there is none, or none among at_most jobs.';
