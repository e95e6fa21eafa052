create function api.dashboard_operator_create_key(session text, organisation text, mode text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_operator_create_key.session, is_fresh => true);
  return ops.create_api_key(dashboard_operator_create_key.organisation, dashboard_operator_create_key.mode);
end
$$;

comment on function api.dashboard_operator_create_key is
  'Create an API key as ops.create_api_key does, for an operator with a fresh sign-in. Returns the key. Refuses as core.operator_of does.';
