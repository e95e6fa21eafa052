create function core.receipts_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram early receipts', 0)
$$;

comment on function core.receipts_lock is
  'The advisory lock between an early receipt and the part that it is about. Whoever stores parts shares it until commit; whoever stores an early receipt takes it alone. So one of the two sees the other. Taken before any message is locked.';
