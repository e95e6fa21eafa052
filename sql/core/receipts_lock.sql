create function core.receipts_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram early receipts', 0)
$$;

comment on function core.receipts_lock is
  'The advisory lock between a receipt that comes early and the note of the part that it is about: who notes parts shares it until commit, who stores an early receipt has it alone. So one of the two sees the other. Taken before any message is locked.';
