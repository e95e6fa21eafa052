create function api.domain_to_sign(name text)
returns setof api.domain_work
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select w.*
  from app.domains d
  cross join lateral jsonb_populate_record(null::api.domain_work, core.domain_work(d)) w
  where d.name = domain_to_sign.name and d.status = 'verified' and d.provider is null
$$;

comment on function api.domain_to_sign is
  'Returns a verified domain that has no identity at a provider yet, as after ops.verify_domain; no row if it has one or does not exist.';
