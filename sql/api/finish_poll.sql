create function api.finish_poll(receipts jsonb)
returns text[]
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_receipts(receipts)
$$;

comment on function api.finish_poll is
  'Record what the provider knows of the emails of a poll: {message_id, provider_event_id, type, occurred_at, recipient, code, text, is_hard}. Returns the types of the receipts that were stored, one for each; most were stored before, by a callback or another poll.';
