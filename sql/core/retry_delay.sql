create function core.retry_delay(attempts integer)
returns interval
language sql volatile
as $$
  -- 5 s, 10 s, 20 s … to an hour; a fifth of jitter, so that what failed together returns apart.
  select least(3600, 5 * 2 ^ least(attempts - 1, 20)) * (0.8 + random() * 0.4) * interval '1 second'
$$;

comment on function core.retry_delay is 'How long to wait after so many hand-overs that failed for now.';
