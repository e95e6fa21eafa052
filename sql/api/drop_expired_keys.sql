create function api.drop_expired_keys()
returns integer
language sql volatile security definer
set search_path = ''
as $$
  select api.drop_expired()
$$;

comment on function api.drop_expired_keys is
  'What api.drop_expired was called before there was more than keys to drop: clocks of that version run on beside this one.';
