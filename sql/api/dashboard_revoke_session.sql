create function api.dashboard_revoke_session(session text, organisation text, id text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_revoke_session.session, dashboard_revoke_session.organisation);
  v_session app.sessions := core.session_of(dashboard_revoke_session.session);
  v_ended app.sessions;
begin
  select s.* into v_ended from app.sessions s where s.id = core.decode_id('ses', dashboard_revoke_session.id);
  if v_ended.user_id is distinct from v_session.user_id then
    perform core.member_of(dashboard_revoke_session.session, dashboard_revoke_session.organisation, 'owner', is_fresh => true);
    if not core.belongs_only_to(v_ended.user_id, v_organisation) then
      perform core.refuse('not_found');
    end if;
  end if;
  delete from app.sessions s where s.id = v_ended.id;
  perform core.audit('sign_out', v_organisation, (select u.email from app.users u where u.id = v_ended.user_id),
    '{"sessions": 1}', null);
end
$$;

comment on function api.dashboard_revoke_session is
  'End a session of the user; for an owner with a fresh sign-in also one of a member who belongs to no other organisation. Refuses as core.member_of does, and with not_found for other sessions.';
