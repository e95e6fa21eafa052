create function core.test_limit_words(test_limit integer)
returns text
language sql immutable
as $$
  select format('The plan allows %s test and sandbox messages a day; retry after 00:00 UTC.', test_limit)
$$;

comment on function core.test_limit_words is
  'Returns the message of rate_limited when the test messages of the day are used up.';
