create function core.clock()
returns timestamptz
language sql volatile
as $$
  select core.now() + (clock_timestamp() - now())
$$;

comment on function core.clock is
  'Returns the current time by the service''s clock. core.now() returns the start of the transaction, which may be much earlier if the transaction waited for locks.';
