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
    -- A call that held the lock earlier may have begun later. The bound excludes later partitions.
    and k.created_at < at + interval '1 hour'
    -- A call to the provider whose process is gone has stored no response.
    and (k.status is not null or core.is_under_way(k.created_at))
$$;

comment on function core.stored_response is
  'Returns the response stored for an idempotency key within the last 24 hours; no row for an unused key or null. A null status means that the first call is still running.';
