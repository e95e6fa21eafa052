create function core.provider_memory()
returns interval
language sql immutable
as $$
  -- Attempts at a message are at most an hour and 12 minutes apart (core.retry_delay).
  select interval '2 hours'
$$;

comment on function core.provider_memory is 'For how long the last failure of a provider says anything of it.';
