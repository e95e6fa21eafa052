create function core.has_test_clock()
returns boolean
-- Not immutable: a plan that folded it would outlive a change.
language sql stable
as $$
  select false
$$;

comment on function core.has_test_clock is
  'Whether core.now() follows POSTGRAM_NOW. A migrate with POSTGRAM_NOW makes it return true, any other false: only the owner of the functions decides.';
