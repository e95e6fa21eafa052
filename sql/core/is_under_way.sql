create function core.is_under_way(since timestamptz)
returns boolean
language sql stable
as $$
  select since > core.now() - interval '2 minutes'
$$;

comment on function core.is_under_way is
  'Whether a call that asks the provider may still be at it: each gives up well within two minutes, so beyond that its process is gone.';
