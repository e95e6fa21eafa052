create function api.has_test_clock()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.has_test_clock()
$$;

comment on function api.has_test_clock is
  'Returns whether the database follows POSTGRAM_NOW. A process that sets POSTGRAM_NOW refuses to start on any other database.';
