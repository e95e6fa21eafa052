create function core.replay(endpoint app.webhook_endpoints, events uuid[])
returns bigint
language sql volatile
as $$
  select core.add_deliveries(endpoint, events);
  select core.restart_deliveries(endpoint, events);
  select coalesce(cardinality(events), 0)::bigint
$$;

comment on function core.replay is
  'Deliver events to an endpoint again, the same ids and bodies, with a fresh schedule; they must be its organisation''s, and it enabled. Returns how many.';
