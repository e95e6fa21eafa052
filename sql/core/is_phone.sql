create function core.is_phone(phone text)
returns boolean
language sql immutable
as $$
  select phone ~ '^\+[1-9][0-9]{6,14}$'
$$;

comment on function core.is_phone is 'Returns whether a text is a number in E.164.';
