create function core.store_response(
  organisation_id uuid, mode app.mode, key text, fingerprint text, status integer, body text
)
returns void
language sql volatile
as $$
  insert into app.idempotency_keys (organisation_id, mode, key, created_at, fingerprint, status, body)
  select store_response.organisation_id, store_response.mode, store_response.key, core.now(),
    store_response.fingerprint, store_response.status, store_response.body
  where store_response.key is not null
$$;

comment on function core.store_response is
  'Store the response of a call, to replay it for its idempotency key. Does nothing without a key. The caller has locked the organisation.';
