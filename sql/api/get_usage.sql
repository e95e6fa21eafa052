create function api.get_usage(organisation_id uuid)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.usage_object(get_usage.organisation_id)::text
$$;

comment on function api.get_usage is 'Returns the usage object of an organisation (core.usage_object).';
