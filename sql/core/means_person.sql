create function core.means_person(given text)
returns boolean
language sql immutable
as $$
  select coalesce(given ~ '@|^\+?[0-9 ]+$', false)
$$;

comment on function core.means_person is
  'Whether what an operator gave is meant as an address or a number; core.check_person says whether it is one.';
