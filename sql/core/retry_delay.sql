create function core.retry_delay(attempts integer)
returns interval
language sql volatile
as $$
  -- 5 s, 10 s, 20 s … up to 1 hour, plus up to a fifth at random, so that messages that failed together do not
  -- retry together.
  select least(3600, 5 * 2 ^ least(attempts - 1, 20)) * (0.8 + random() * 0.4) * interval '1 second'
$$;

comment on function core.retry_delay is 'Returns how long a message waits after this many deferred attempts.';
