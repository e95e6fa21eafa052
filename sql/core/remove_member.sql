create function core.remove_member(organisation_id uuid, email text)
returns void
language plpgsql volatile
as $$
declare
  v_user app.users := core.find_user(remove_member.email);
  v_role text;
begin
  perform 1 from app.organisations o where o.id = remove_member.organisation_id for no key update;
  delete from app.members m
  where m.organisation_id = remove_member.organisation_id and m.user_id = v_user.id
  returning m.role into v_role;
  if v_role is null then
    raise exception '% is not a member of this organisation', v_user.email using hint = 'select organisation, email from ops.members';
  end if;
  perform core.check_has_owner(remove_member.organisation_id);
  perform core.audit('remove_member', remove_member.organisation_id, v_user.email, jsonb_build_object('role', v_role), null);
  perform core.delete_user_without_role(v_user.id);
end
$$;

comment on function core.remove_member is
  'Removes a user from an organisation, and deletes the user without another one. Raises an error if the user is not a member, or if no owner would remain.';
