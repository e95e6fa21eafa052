create function core.operator_of(session text, is_fresh boolean default false)
returns app.users
language plpgsql volatile
as $$
declare
  v_session app.sessions := core.session_of(operator_of.session, operator_of.is_fresh);
  v_user app.users;
begin
  select u.* into v_user from app.users u where u.id = v_session.user_id and u.is_operator;
  if not found then
    perform core.refuse('not_found');
  end if;
  return v_user;
end
$$;

comment on function core.operator_of is
  'Returns the user of this session if it is an operator. Refuses with unauthorized, or with not_found for other users. is_fresh: as in core.session_of.';
