create function core.find_user(email text)
returns app.users
language plpgsql stable
as $$
declare
  v_user app.users;
begin
  select u.* into v_user from app.users u where u.email = lower(find_user.email);
  if not found then
    raise exception 'there is no user %', coalesce(quote_literal(left(find_user.email, 60)), 'null')
      using hint = 'select email from ops.users';
  end if;
  return v_user;
end
$$;

comment on function core.find_user is 'Returns the user of the dashboard with this address. Raises an error if there is none.';
