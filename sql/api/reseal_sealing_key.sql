create function api.reseal_sealing_key(id uuid, private_key text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  update app.sealing_keys k
  set private_key = reseal_sealing_key.private_key
  where k.id = reseal_sealing_key.id
$$;

comment on function api.reseal_sealing_key is
  'Keep the private key of a sealing key as the SECRET_KEY now in use has encrypted it.';
