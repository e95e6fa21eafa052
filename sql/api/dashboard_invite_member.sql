create function api.dashboard_invite_member(session text, organisation text, email text, role text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_hourly constant integer := 50;
  v_organisation uuid := core.member_of(dashboard_invite_member.session, dashboard_invite_member.organisation, 'owner', is_fresh => true);
  v_email text := lower(dashboard_invite_member.email);
  v_invited_by text := current_setting('postgram.user');
begin
  -- Invitations of an organisation run one after another, so that several at once cannot exceed the limit.
  perform 1 from app.organisations o where o.id = v_organisation for no key update;
  if core.is_member(v_organisation, v_email) then
    perform core.refuse('validation_error', '{"email": ["is a member already; change the role in the list"]}');
  end if;
  if (
    select count(*) from app.notices n
    where n.organisation_id = v_organisation and n.kind = 'invited' and n.created_at > core.now() - interval '1 hour'
  ) >= c_hourly then
    perform core.refuse('rate_limited', words => format('The organisation sent %s invitations within an hour. Try again later.', c_hourly),
      retry_after => 3600);
  end if;
  perform ops.invite(dashboard_invite_member.organisation, v_email, dashboard_invite_member.role);
  perform core.notify_user(v_email, v_organisation, 'invited',
    jsonb_build_object('role', dashboard_invite_member.role, 'invitedBy', v_invited_by));
end
$$;

comment on function api.dashboard_invite_member is
  'Invite a person as ops.invite does, for an owner with a fresh sign-in, and send the person an email. Refuses as core.member_of does, with validation_error for a member, and with rate_limited after 50 invitations within an hour.';
