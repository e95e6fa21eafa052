create function core.add_user(email text)
returns uuid
language plpgsql volatile
as $$
declare
  v_id uuid;
begin
  perform core.check_email(add_user.email);
  insert into app.users (id, email, created_at)
  values (core.new_id(core.now()), lower(add_user.email), core.now())
  on conflict on constraint users_one_per_address do nothing;
  select u.id into v_id from app.users u where u.email = lower(add_user.email);
  return v_id;
end
$$;

comment on function core.add_user is 'Returns the user of the dashboard with this address; creates it if there is none.';
