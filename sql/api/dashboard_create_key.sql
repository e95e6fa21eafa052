create function api.dashboard_create_key(session text, organisation text, mode text, scopes text[])
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.member_of(dashboard_create_key.session, dashboard_create_key.organisation, 'owner', is_fresh => true);
  return ops.create_api_key(dashboard_create_key.organisation, dashboard_create_key.mode, dashboard_create_key.scopes);
end
$$;

comment on function api.dashboard_create_key is
  'Create an API key as ops.create_api_key does, for an owner with a fresh sign-in. Returns the key. Refuses as core.member_of does.';
