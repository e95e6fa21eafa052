create function core.lock_holder(pool_id text)
returns integer
language sql stable
as $$
  select l.pid
  from pg_locks l
  where l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and (l.classid::bigint << 32) + l.objid::bigint = core.pool_lock(pool_id)
$$;

comment on function core.lock_holder is
  'Returns the PID of the backend that holds the lock of a worker pool; null if its process is gone.';
