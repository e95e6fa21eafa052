create function api.record_sms_receipts(receipts jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_sms_receipts(receipts)
$$;

comment on function api.record_sms_receipts is
  'Record receipts for parts of SMS. A receipt that arrives before its part is recorded is stored until then. Returns the number of new receipts.';
