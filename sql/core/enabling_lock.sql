create function core.enabling_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram enabling of endpoints', 0)
$$;

comment on function core.enabling_lock is
  'Returns the key of the advisory lock between recording an event for a disabled endpoint (shared, until commit) and enabling that endpoint (exclusive). With it, one of the two transactions always sees the other''s change.';
