create function api.record_receipts(receipts jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_receipts(receipts)
$$;

comment on function api.record_receipts is
  'Record what a provider reports of messages: {message_id, provider_event_id, type, occurred_at, recipient, code, text, is_hard}. Answers how many were new.';
