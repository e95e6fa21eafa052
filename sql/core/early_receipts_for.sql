create function core.early_receipts_for(network_ids text[])
returns setof app.early_receipts
language sql stable
-- The table is nearly always empty, and plans assume so. With these settings only the one index is left that
-- does not read all of the table when a network is fast.
set enable_seqscan = off
set enable_indexscan = off
as $$
  select e.*
  from app.early_receipts e
  where e.network_ids && early_receipts_for.network_ids
$$;

comment on function core.early_receipts_for is 'Early receipts that wait for a part with one of these network ids.';
