create function core.receipts_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram early receipts', 0)
$$;

comment on function core.receipts_lock is
  'Returns the key of the advisory lock between recording a message part (shared, until commit) and storing an early receipt (exclusive). With it, one of the two transactions always sees the other''s change. Taken before any message is locked.';
