create function core.member_of(session text, organisation text, role text default 'viewer', is_fresh boolean default false)
returns uuid
language plpgsql volatile
as $$
declare
  v_session app.sessions := core.session_of(member_of.session, member_of.is_fresh);
  v_organisation uuid := core.decode_id('org', member_of.organisation);
  v_role app.member_role := core.role_of(v_session, v_organisation);
begin
  if v_role is null then
    perform core.refuse('not_found');
  end if;
  if v_role < member_of.role::app.member_role then
    perform core.refuse('insufficient_scope', words => format(
      'Your role is %s; this needs the role %s. An owner of the organisation can change your role.', v_role, member_of.role));
  end if;
  return v_organisation;
end
$$;

comment on function core.member_of is
  'Returns the UUID of an organisation (org_…) if the user of this session has at least this role in it: viewer, member or owner. Refuses with unauthorized, with not_found if the user does not belong to it, or with insufficient_scope. An operator who views the organisation has the role viewer. is_fresh: as in core.session_of.';
