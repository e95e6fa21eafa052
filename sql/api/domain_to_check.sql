create function api.domain_to_check(id uuid)
returns setof api.domain_work
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select w.*
  from app.domains d
  cross join lateral jsonb_populate_record(null::api.domain_work, core.domain_work(d)) w
  where d.id = domain_to_check.id and d.change is null
$$;

comment on function api.domain_to_check is
  'Returns the work for a domain whose check is due; no row if the domain is gone or another process is working on it.';
