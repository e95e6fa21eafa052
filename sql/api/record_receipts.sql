create function api.record_receipts(receipts jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select cardinality(core.record_receipts(receipts))
$$;

comment on function api.record_receipts is
  'api.finish_poll for processes of earlier versions. Returns how many receipts were stored.';
