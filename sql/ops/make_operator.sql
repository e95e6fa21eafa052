create function ops.make_operator(email text, is_operator boolean default true)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_user uuid := core.add_user(make_operator.email);
  v_before boolean;
begin
  if make_operator.is_operator is null then
    raise exception 'is_operator must be true or false';
  end if;
  select u.is_operator into v_before from app.users u where u.id = v_user for no key update;
  update app.users u set is_operator = make_operator.is_operator where u.id = v_user;
  perform core.audit('make_operator', null, lower(make_operator.email),
    jsonb_build_object('is_operator', v_before), jsonb_build_object('is_operator', make_operator.is_operator));
  perform core.delete_user_without_role(v_user);
end
$$;

comment on function ops.make_operator is
  'Let a person use the operator pages of the dashboard; with is_operator => false no longer.';
