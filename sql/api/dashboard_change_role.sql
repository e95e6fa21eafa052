create function api.dashboard_change_role(session text, organisation text, email text, role text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_change_role.session, dashboard_change_role.organisation, 'owner', is_fresh => true);
begin
  if not core.is_member(v_organisation, dashboard_change_role.email) then
    perform core.refuse('not_found');
  end if;
  perform ops.invite(dashboard_change_role.organisation, dashboard_change_role.email, dashboard_change_role.role);
end
$$;

comment on function api.dashboard_change_role is
  'Change the role of a member as ops.invite does, for an owner with a fresh sign-in. Refuses as core.member_of does, and with not_found for an address that is not a member''s.';
