create function core.provider_failure_lifetime()
returns interval
language sql immutable
as $$
  -- Attempts at a message are at most an hour and 12 minutes apart (core.retry_delay).
  select interval '2 hours'
$$;

comment on function core.provider_failure_lifetime is
  'How long after its last failure a provider counts as failing: 2 hours.';
