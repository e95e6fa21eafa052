create function api.record_sms_receipts(receipts jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_sms_receipts(receipts)
$$;

comment on function api.record_sms_receipts is
  'Record what a network reports of parts of SMS: {provider, network_ids (the spellings that the id may have, the likeliest first), phone, type delivered|deferred|failed|expired, occurred_at, code, text}. One that comes before its part is known waits for that. Answers how many were new.';
