-- Advisory locks are not replicated: a standby knows the heartbeats only.
create function core.is_alive(process app.processes)
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case when pg_is_in_recovery() then process.heartbeat_at > now() - interval '30 seconds'
    else core.lock_holder(process.pool_id) is not null end
$$;

comment on function core.is_alive is
  'Returns whether a process holds the lock of its worker pool; on a standby, whether its last heartbeat is at most 30 s old.';
