create function core.lock_endpoints(ids uuid[])
returns void
language plpgsql volatile
as $$
begin
  perform from app.webhook_endpoints e
  -- A disabled endpoint gets no deliveries, and the transaction that enables it may hold its row for long.
  where e.id = any (ids) and e.disabled_at is null
  order by e.id
  for no key update;
end
$$;

comment on function core.lock_endpoints is
  'Lock endpoints that are not disabled, in the order of their ids and before any of their deliveries. A later statement reads them as the former lock holder left them.';
