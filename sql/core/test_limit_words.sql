create function core.test_limit_words(test_limit integer)
returns text
language sql immutable
as $$
  select format('The plan allows %s a day; retry after 00:00 UTC.', core.counted(test_limit, 'test and sandbox message'))
$$;

comment on function core.test_limit_words is
  'Returns the message of rate_limited when the test messages of the day are used up.';
