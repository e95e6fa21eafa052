create function core.is_under_way(since timestamptz)
returns boolean
language sql stable
as $$
  select since > core.now() - interval '2 minutes'
$$;

comment on function core.is_under_way is
  'Returns whether a call to the provider that started at this time may still be running; null if the time is null. Every call ends within 2 minutes; after that its process is gone.';
