create function core.early_receipts_for(network_ids text[])
returns setof app.early_receipts
language sql stable
-- The table is usually empty and planned as if it always were. Without these scans the planner uses the one
-- index that stays fast when the table is large.
set enable_seqscan = off
set enable_indexscan = off
as $$
  select e.*
  from app.early_receipts e
  where e.network_ids && early_receipts_for.network_ids
$$;

comment on function core.early_receipts_for is
  'Returns the stored receipts for message parts with one of these network IDs.';
