-- Locks: the user, after the organisation.
create function core.delete_user_without_role(user_id uuid)
returns void
language plpgsql volatile
as $$
declare
  v_user app.users;
begin
  -- An invitation at the same time has inserted its member when this gets the lock, or waits for it.
  select u.* into v_user from app.users u where u.id = delete_user_without_role.user_id for update;
  if v_user.is_operator or exists (select from app.members m where m.user_id = v_user.id) then
    return;
  end if;
  delete from app.notices n where n.email = v_user.email;
  delete from app.sign_in_links l where l.user_id = v_user.id;
  delete from app.sessions s where s.user_id = v_user.id;
  delete from app.users u where u.id = v_user.id;
end
$$;

comment on function core.delete_user_without_role is
  'Deletes a user who belongs to no organisation and is no operator, with sessions, links and notices. Does nothing for others.';
