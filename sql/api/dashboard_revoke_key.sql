create function api.dashboard_revoke_key(session text, organisation text, prefix text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_revoke_key.session, dashboard_revoke_key.organisation, 'owner', is_fresh => true);
begin
  if not exists (
    select from app.api_keys k
    where k.organisation_id = v_organisation and k.prefix = dashboard_revoke_key.prefix
  ) then
    perform core.refuse('not_found');
  end if;
  perform ops.revoke_api_key(dashboard_revoke_key.prefix);
end
$$;

comment on function api.dashboard_revoke_key is
  'Revoke an API key of the organisation as ops.revoke_api_key does, for an owner with a fresh sign-in. Refuses as core.member_of does, and with not_found for another prefix.';
