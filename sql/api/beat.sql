create function api.beat(pool_id text, roles text[], host text, pid integer, version text, sent_at timestamptz)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_gone text[];
  v_last_beat timestamptz;
begin
  -- Taken once and held by this session; taken again after the connection was lost.
  if core.lock_holder(beat.pool_id) is distinct from pg_backend_pid() then
    perform pg_try_advisory_lock(core.pool_lock(beat.pool_id));
  end if;

  select p.heartbeat_at into v_last_beat from app.processes p where p.pool_id = beat.pool_id;
  insert into app.processes (pool_id, roles, host, pid, version, clock_offset, synchronous_commit)
  values (beat.pool_id, beat.roles, beat.host, beat.pid, beat.version,
    -- The statement's time is when it arrived: no lock that it waited for is counted.
    greatest(interval '-1 day', least(interval '1 day', beat.sent_at - statement_timestamp())),
    current_setting('synchronous_commit'))
  on conflict (pool_id) do update
  set heartbeat_at = now(), clock_offset = excluded.clock_offset, synchronous_commit = excluded.synchronous_commit;

  with gone as (
    select p.pool_id
    from app.processes p
    where p.pool_id <> beat.pool_id and core.lock_holder(p.pool_id) is null
      -- A process whose connection was cut, as all are at once in a failover, takes its lock again at
      -- its next beat, and must not find its jobs with others, who would hand them over a second
      -- time. Gone is who missed a beat (they come every 2 seconds) before our own last one.
      and p.heartbeat_at < v_last_beat - interval '3 seconds'
    for update skip locked
  ),
  removed as (
    delete from app.processes p using gone g where p.pool_id = g.pool_id
  )
  select array_agg(g.pool_id) into v_gone from gone g;

  if v_gone is not null then
    perform graphile_worker.force_unlock_workers(v_gone);
  end if;
  return coalesce(cardinality(v_gone), 0);
end
$$;

comment on function api.beat is
  'Register a process that runs, on a connection that it keeps, with its version and the time on its clock, and free the jobs of processes that are gone (promise 5). Returns how many were gone.';
