create function core.lock_division()
returns void
language plpgsql volatile
-- The connections of a process that has stopped may be closed a moment later.
set lock_timeout = '2s'
as $$
begin
  if pg_is_in_recovery() then
    raise exception 'this server is a standby; promote it first';
  end if;
  perform pg_advisory_xact_lock(core.division_lock());
  -- A process that has lost its connection takes its lock again when it sends a heartbeat.
  if exists (
    select from app.processes p
    where core.is_alive(p) or p.heartbeat_at > now() - interval '30 seconds'
  ) then
    raise lock_not_available;
  end if;
exception when lock_not_available then
  raise exception 'a process of the service is running, or was killed within the last 30 seconds; stop all with SIGTERM'
    using hint = 'select host, pid, roles, heartbeat_at from ops.processes';
end
$$;

comment on function core.lock_division is
  'Keep processes of the service from starting until the end of the transaction. Raises an error if one is running.';
