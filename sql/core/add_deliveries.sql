create function core.add_deliveries(endpoint app.webhook_endpoints, events uuid[])
returns void
language plpgsql volatile
as $$
begin
  if coalesce(cardinality(events), 0) = 0 then
    return;
  end if;
  -- A million events take a while, in which nobody may have to wait for a row that is being posted, as
  -- what finishes one holds many endpoints. So the endpoint is not locked: should it be disabled
  -- meanwhile, whoever takes its turn clears these away.
  insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
  select endpoint.id, e.id, core.now()
  from unnest(events) e (id)
  order by e.id
  on conflict do nothing;

  perform core.add_jobs(array[core.delivery_job(endpoint)]);
end
$$;

comment on function core.add_deliveries is
  'The first half of core.replay: what does not wait to be delivered does so now, and a job posts what is due. It waits for whoever is finishing one of these, who may in turn wait for what core.restart_deliveries has changed: so of several endpoints, all come here first.';
