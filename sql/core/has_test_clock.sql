create function core.has_test_clock()
returns boolean
-- Not immutable, because a cached plan would keep the constant after a change.
language sql stable
as $$
  select false
$$;

comment on function core.has_test_clock is
  'Returns whether core.now() follows POSTGRAM_NOW. The command "migrate" replaces this function: with POSTGRAM_NOW set it returns true, otherwise false. So only the owner of the functions can change the clock.';
