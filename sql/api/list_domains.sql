create function api.list_domains(organisation_id uuid)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(json_agg(core.domain_object(d) order by d.id desc), '[]')::text
  from app.domains d
  where d.organisation_id = list_domains.organisation_id and d.change is distinct from 'adding'
$$;

comment on function api.list_domains is
  'Returns the domain objects of an organisation as JSON text, newest first.';
