create function api.record_heartbeat(
  pool_id text, roles text[], host text, pid integer, version text, sent_at timestamptz, tasks text[] default '{}'
)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone text[];
  v_last_heartbeat timestamptz;
  v_problem text;
begin
  -- The session takes the lock once, and again after its connection was lost.
  if core.lock_holder(record_heartbeat.pool_id) is distinct from pg_backend_pid() then
    v_problem := core.check_division();
    if v_problem is not null then
      raise exception '%', v_problem;
    end if;
    perform pg_try_advisory_lock(core.pool_lock(record_heartbeat.pool_id));
  end if;

  select p.heartbeat_at into v_last_heartbeat from app.processes p where p.pool_id = record_heartbeat.pool_id;
  insert into app.processes (pool_id, roles, host, pid, version, clock_offset, synchronous_commit, tasks)
  values (record_heartbeat.pool_id, record_heartbeat.roles, record_heartbeat.host, record_heartbeat.pid, record_heartbeat.version,
    -- statement_timestamp() is when the heartbeat arrived, before any wait for a lock.
    greatest(interval '-1 day', least(interval '1 day', record_heartbeat.sent_at - statement_timestamp())),
    current_setting('synchronous_commit'), record_heartbeat.tasks)
  on conflict on constraint processes_pkey do update
  set heartbeat_at = now(), clock_offset = excluded.clock_offset, synchronous_commit = excluded.synchronous_commit;

  if 'clock' = any (record_heartbeat.roles) then
    perform core.record_cell_heartbeat();
  end if;

  with gone as (
    select p.pool_id
    from app.processes p
    where p.pool_id <> record_heartbeat.pool_id and core.lock_holder(p.pool_id) is null
      -- In a failover all processes lose their connections, and take their locks again at the next heartbeat.
      -- Until then their jobs must not be released, or other workers would send the messages again. A process
      -- is gone if it missed a heartbeat (one every 2 s) before our own last one.
      and p.heartbeat_at < v_last_heartbeat - interval '3 seconds'
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

comment on function api.record_heartbeat is
  'Record the heartbeat of a worker pool on a connection that the process keeps open, and release the jobs of processes that are gone. sent_at is the time by the process''s clock, tasks are those whose jobs the pool takes. Returns the number of pools that were gone. Raises an error while the cell is being divided.';
