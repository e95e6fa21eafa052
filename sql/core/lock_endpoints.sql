create function core.lock_endpoints(ids uuid[])
returns void
language sql volatile
as $$
  select from app.webhook_endpoints e
  -- Nothing is delivered to one that is disabled, and who enables it may hold it for long.
  where e.id = any (ids) and e.disabled_at is null
  order by e.id
  for no key update
$$;

comment on function core.lock_endpoints is
  'Lock endpoints that are not disabled, always in the order of their ids and before any of their deliveries. What is to be known of them afterwards is read by a later statement.';
