create function core.webhook_retry_delay(attempts integer)
returns interval
language sql volatile
as $$
  -- With jitter, so that what failed together returns apart.
  select ('{1 minute, 5 minutes, 30 minutes, 2 hours, 24 hours}'::interval[])[attempts] * (1 + random() * 0.1)
$$;

comment on function core.webhook_retry_delay is
  'How long a delivery that failed so many times waits for its next attempt (interface 6.4); null when that was the last.';
