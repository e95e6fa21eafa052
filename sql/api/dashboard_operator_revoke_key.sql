create function api.dashboard_operator_revoke_key(session text, prefix text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_operator_revoke_key.session, is_fresh => true);
  perform ops.revoke_api_key(dashboard_operator_revoke_key.prefix);
end
$$;

comment on function api.dashboard_operator_revoke_key is
  'Revoke an API key as ops.revoke_api_key does, for an operator with a fresh sign-in. Refuses as core.operator_of does.';
