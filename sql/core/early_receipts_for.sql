create function core.early_receipts_for(network_ids text[])
returns setof app.early_receipts
language sql stable
-- The table is empty most of the time, and planned for as if it were. These leave the one index that
-- does not read all of it when a network is fast.
set enable_seqscan = off
set enable_indexscan = off
as $$
  select e.*
  from app.early_receipts e
  where e.network_ids && early_receipts_for.network_ids
$$;

comment on function core.early_receipts_for is 'The receipts that wait for a part with one of these ids.';
