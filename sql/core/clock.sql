create function core.clock()
returns timestamptz
language sql volatile
as $$
  select core.now() + (clock_timestamp() - now())
$$;

comment on function core.clock is
  'The service''s clock at this very moment; core.now() is that at which the transaction began, which may be long before it had its locks.';
