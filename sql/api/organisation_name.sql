create function api.organisation_name(organisation_id uuid)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select o.name from app.organisations o where o.id = organisation_name.organisation_id
$$;

comment on function api.organisation_name is
  'Returns the name of an organisation; null if it does not exist.';
