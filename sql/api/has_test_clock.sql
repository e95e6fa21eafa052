create function api.has_test_clock()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.has_test_clock()
$$;

comment on function api.has_test_clock is
  'Whether the database follows POSTGRAM_NOW: a process that has it set starts on no other.';
