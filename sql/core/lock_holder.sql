-- As the owner, because views of ops ask it: what a view calls runs as whoever reads the view.
create function core.lock_holder(pool_id text)
returns integer
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select l.pid
  from pg_locks l
  where l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and (l.classid::bigint << 32) + l.objid::bigint = core.pool_lock(pool_id)
$$;

comment on function core.lock_holder is 'The backend that holds a process''s lock; null when the process is gone.';
