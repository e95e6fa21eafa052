create function core.send_job(channel app.channel, message_id uuid, priority integer, run_at timestamptz default null)
returns graphile_worker.job_spec
language sql stable
as $$
  select (
    'send_' || channel, json_build_object('id', message_id), null, run_at, null, null,
    least(32767, priority)::smallint, null
  )::graphile_worker.job_spec
$$;

comment on function core.send_job is
  'Returns the job that attempts to send a message. run_at is the server''s real time.';
