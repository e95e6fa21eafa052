create function api.sealing_keys()
returns setof api.sealing_key
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select k.id, k.private_key from app.sealing_keys k order by k.created_at desc, k.id desc
$$;

comment on function api.sealing_keys is 'The keys that open sealed secrets, the one in use first.';
