create function core.provider_failure_lifetime()
returns interval
language sql immutable
as $$
  -- Attempts of a message are at most 1 hour 12 minutes apart (core.retry_delay).
  select interval '2 hours'
$$;

comment on function core.provider_failure_lifetime is
  'Returns how long after its last failure a provider counts as failing: 2 hours.';
