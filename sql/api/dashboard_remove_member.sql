create function api.dashboard_remove_member(session text, organisation text, email text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_remove_member.session, dashboard_remove_member.organisation, 'owner', is_fresh => true);
begin
  if not core.is_member(v_organisation, dashboard_remove_member.email) then
    perform core.refuse('not_found');
  end if;
  perform ops.remove_member(dashboard_remove_member.organisation, dashboard_remove_member.email);
end
$$;

comment on function api.dashboard_remove_member is
  'Remove a member as ops.remove_member does, for an owner with a fresh sign-in. Refuses as core.member_of does, and with not_found for an address that is not a member''s.';
