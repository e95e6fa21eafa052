create function api.record_sms_receipts(receipts jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_sms_receipts(receipts)
$$;

comment on function api.record_sms_receipts is
  'Record receipts of a network for parts of SMS: {provider, network_ids (the spellings that the id may have, the likeliest first), phone, type delivered|deferred|failed|expired, occurred_at, code, text}. A receipt that arrives before its part is known waits for it. Returns how many were new.';
