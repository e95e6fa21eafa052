create function core.means_person(given text)
returns boolean
language sql immutable
as $$
  select coalesce(given ~ '@|^\+?[0-9 ]+$', false)
$$;

comment on function core.means_person is
  'Returns whether an operator''s argument looks like an address or a number; core.check_person validates it.';
