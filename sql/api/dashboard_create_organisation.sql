create function api.dashboard_create_organisation(session text, name text, owner_email text, plan text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_create_organisation.session);
  return ops.create_organisation(dashboard_create_organisation.name, dashboard_create_organisation.owner_email,
    dashboard_create_organisation.plan);
end
$$;

comment on function api.dashboard_create_organisation is
  'Create an organisation as ops.create_organisation does, for an operator. Returns its ID. Refuses as core.operator_of does.';
