create function core.set_member(organisation_id uuid, email text, role text)
returns void
language plpgsql volatile
as $$
declare
  v_user uuid;
  v_before text;
begin
  if set_member.role is null or set_member.role <> all (enum_range(null::app.member_role)::text[]) then
    raise exception 'the role must be owner, member or viewer';
  end if;
  -- Serialises changes of the members, so that two owners cannot remove each other at once. Before the user, as in
  -- api.dashboard_invite_member.
  perform 1 from app.organisations o where o.id = set_member.organisation_id for no key update;
  v_user := core.add_user(set_member.email);
  select m.role into v_before
  from app.members m where m.organisation_id = set_member.organisation_id and m.user_id = v_user;
  insert into app.members (organisation_id, user_id, role, created_at)
  values (set_member.organisation_id, v_user, set_member.role::app.member_role, core.now())
  on conflict on constraint members_pkey do update set role = excluded.role;
  perform core.check_has_owner(set_member.organisation_id);
  perform core.audit('invite', set_member.organisation_id, lower(set_member.email),
    case when v_before is not null then jsonb_build_object('role', v_before) end, jsonb_build_object('role', set_member.role));
end
$$;

comment on function core.set_member is
  'Adds a user to an organisation, or changes the role: owner, member or viewer. Raises an error if no owner would remain.';
