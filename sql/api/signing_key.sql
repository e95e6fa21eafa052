create function api.signing_key(name text)
returns setof api.signing_key
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select k.selector, k.private_key
  from app.domains d
  join app.dkim_keys k on k.domain_id = d.id and k.state = 'active' and k.private_key is not null
  where d.name = signing_key.name and d.status = 'verified'
$$;

comment on function api.signing_key is
  'Returns the DKIM key that signs for a verified domain; no row if the service holds none.';
