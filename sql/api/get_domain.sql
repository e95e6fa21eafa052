create function api.get_domain(organisation_id uuid, id text)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.domain_object(d)::text
  from app.domains d
  where d.id = core.decode_id('dom', get_domain.id) and d.organisation_id = get_domain.organisation_id
    and d.change is distinct from 'adding'
$$;

comment on function api.get_domain is
  'Returns the domain object as JSON text; null if the organisation has no such domain.';
