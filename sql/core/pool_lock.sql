create function core.pool_lock(pool_id text)
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram pool ' || pool_id, 0)
$$;

comment on function core.pool_lock is
  'Returns the key of the advisory lock that a process holds for a worker pool as long as it lives.';
