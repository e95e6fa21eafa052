create function api.store_sealed_secrets(secrets jsonb, key_id text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_secrets core.sealed_secret[] :=
    array(select s from jsonb_populate_recordset(null::core.sealed_secret, secrets) s);
  v_current integer;
  v_old integer;
begin
  -- In the order of their ids, as core.lock_endpoints does; here disabled endpoints as well.
  perform from app.webhook_endpoints e
  where e.id in (select s.endpoint_id from unnest(v_secrets) s)
  order by e.id
  for no key update;

  update app.webhook_endpoints e
  set secret = s.sealed, secret_sealed_by = key_id
  from unnest(v_secrets) s
  where e.id = s.endpoint_id and encode(sha256(convert_to(e.secret, 'UTF8')), 'hex') = s.replaces_sha256;
  get diagnostics v_current = row_count;

  -- A secret that was rotated since the service read it is the old one by now.
  update app.webhook_endpoints e
  set old_secret = s.sealed, old_secret_sealed_by = key_id
  from unnest(v_secrets) s
  where e.id = s.endpoint_id and encode(sha256(convert_to(e.old_secret, 'UTF8')), 'hex') = s.replaces_sha256;
  get diagnostics v_old = row_count;
  return v_current + v_old;
end
$$;

comment on function api.store_sealed_secrets is
  'Replace signing secrets with their sealed form. key_id: the SECRET_KEY that sealed them. Returns how many were replaced; a secret that changed since it was read is left alone.';
