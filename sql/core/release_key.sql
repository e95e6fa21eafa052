create function core.release_key(organisation_id uuid, mode app.mode, key text)
returns void
language sql volatile
as $$
  delete from app.idempotency_keys k
  where k.organisation_id = release_key.organisation_id and k.mode = release_key.mode and k.key = release_key.key
    and k.created_at > core.now() - interval '24 hours' and k.status is null
$$;

comment on function core.release_key is
  'Forget that a call with this Idempotency-Key is in progress, because the call ended.';
