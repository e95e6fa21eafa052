create function api.receive_callbacks(callbacks jsonb)
returns api.received_callbacks
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.outcomes, r.stored from core.record_callbacks(callbacks) r
$$;

comment on function api.receive_callbacks is
  'Record callbacks of a provider whose signatures are valid: {n, token, signed_at (Unix seconds), receipt (null for an event that means nothing)}. Returns for each its outcome: recorded, repeated (it had come before), stale (signed too long ago, or in the future) or replayed (its token came with another event before); only the first changes anything. stored has the types of the receipts that were new.';
