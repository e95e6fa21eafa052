create function api.dashboard_organisation_id(session text, organisation text, role text)
returns uuid
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.member_of(dashboard_organisation_id.session, dashboard_organisation_id.organisation, dashboard_organisation_id.role)
$$;

comment on function api.dashboard_organisation_id is
  'Returns the UUID of an organisation to a user with at least this role, for what needs more than one call: adding, checking and removing a domain. Refuses as core.member_of does.';
