create function api.receive_callbacks(callbacks jsonb)
returns api.received_callbacks
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.outcomes, r.stored from core.record_callbacks(callbacks) r
$$;

comment on function api.receive_callbacks is
  'Record callbacks with valid signatures: {n, token, signed_at (Unix seconds), receipt (null for an event that is ignored)}. Returns an outcome for each: recorded, repeated (received before), stale (signed too long ago, or in the future) or replayed (the token was received with another event). Only recorded changes anything. stored has the type of each new receipt.';
