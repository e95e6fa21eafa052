create function api.finish_poll(receipts jsonb)
returns text[]
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_receipts(receipts)
$$;

comment on function api.finish_poll is
  'Record the receipts of a poll. Returns the type of each receipt that was stored; most have been stored before by a callback or an earlier poll.';
