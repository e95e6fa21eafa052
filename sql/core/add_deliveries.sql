create function core.add_deliveries(endpoint app.webhook_endpoints, events uuid[])
returns void
language plpgsql volatile
as $$
begin
  if coalesce(cardinality(events), 0) = 0 then
    return;
  end if;
  -- A million events take a while, and api.finish_deliveries holds many endpoints at a time. So the endpoint
  -- is not locked: if it is disabled meanwhile, api.clear_deliveries deletes these rows.
  insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
  select endpoint.id, e.id, core.now()
  from unnest(events) e (id)
  order by e.id
  on conflict do nothing;

  perform core.add_jobs(array[core.delivery_job(endpoint)]);
end
$$;

comment on function core.add_deliveries is
  'The first half of core.replay: insert the deliveries that do not wait already, and enqueue a job. It may wait for a transaction that finishes one of these deliveries, which in turn may wait for rows of core.restart_deliveries. So a replay at several endpoints calls this for all of them first.';
