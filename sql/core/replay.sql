create function core.replay(endpoint app.webhook_endpoints, events uuid[])
returns bigint
language plpgsql volatile
as $$
begin
  if coalesce(cardinality(events), 0) = 0 then
    return 0;
  end if;
  -- The endpoint is not locked, as a replay of a million events would keep all deliveries waiting;
  -- should it be disabled meanwhile, whoever takes its turn clears these away. What waits already is
  -- left out here, so that no row which is being posted stays locked until this is through.
  insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
  select endpoint.id, e.id, core.now()
  from unnest(events) e (id)
  order by e.id
  on conflict do nothing;

  with waiting as (
    select d.event_id
    from unnest(events) e (id)
    join app.webhook_deliveries d on d.endpoint_id = endpoint.id and d.event_id = e.id
    where d.due_at > core.now() or d.attempts > 0
    -- What is locked is being finished, or replayed by somebody else.
    for update of d skip locked
  )
  update app.webhook_deliveries d
  set due_at = core.now(), attempts = 0
  from waiting w
  where d.endpoint_id = endpoint.id and d.event_id = w.event_id;

  perform core.add_jobs(array[core.delivery_job(endpoint)]);
  return cardinality(events);
end
$$;

comment on function core.replay is
  'Deliver events to an endpoint again, the same ids and bodies, with a fresh schedule; they must be its organisation''s, and it enabled. Answers how many.';
