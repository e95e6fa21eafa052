create function core.stored_response(organisation_id uuid, mode app.mode, key text, at timestamptz)
returns setof app.idempotency_keys
language sql stable
as $$
  select k.*
  from app.idempotency_keys k
  where k.organisation_id = stored_response.organisation_id
    and k.mode = stored_response.mode
    and k.key = stored_response.key
    and k.created_at > at - interval '24 hours'
    -- Whoever had the lock before us may have begun after us. The bound spares later partitions.
    and k.created_at < at + interval '1 hour'
    -- Of a call that asked the provider and whose process is gone nothing was kept.
    and (k.status is not null or core.is_under_way(k.created_at))
$$;

comment on function core.stored_response is
  'What was answered to the call with that idempotency key within 24 hours (interface 4.12); no row for a key that is free or null. status null: that call is in progress.';
