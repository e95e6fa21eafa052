create function core.webhook_retry_delay(attempts integer)
returns interval
language sql volatile
as $$
  -- At random up to a tenth longer, so that deliveries that failed together do not retry together.
  select ('{1 minute, 5 minutes, 30 minutes, 2 hours, 24 hours}'::interval[])[attempts] * (1 + random() * 0.1)
$$;

comment on function core.webhook_retry_delay is
  'Returns how long a delivery waits after this many failed attempts; null if that was the last attempt.';
