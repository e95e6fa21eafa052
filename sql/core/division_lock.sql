create function core.division_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram division', 0)
$$;

comment on function core.division_lock is
  'Returns the key of the advisory lock that each process of the service shares, and that a division takes alone.';
