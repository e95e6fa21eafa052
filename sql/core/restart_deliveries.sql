create function core.restart_deliveries(endpoint app.webhook_endpoints, events uuid[])
returns void
language plpgsql volatile
as $$
declare
  v_soon constant timestamptz := core.now() + interval '5 minutes';
begin
  -- First the deliveries that do not fall due before this ends; last those that a worker may have in hand.
  -- The latter are due anyway: only as many restart their schedule as a moment allows.
  for v_is_soon in 0 .. 1 loop
    with waiting as (
      select d.event_id
      from unnest(events) e (id)
      join app.webhook_deliveries d on d.endpoint_id = endpoint.id and d.event_id = e.id
      where (d.due_at <= v_soon) = (v_is_soon = 1) and (d.due_at > core.now() or d.attempts > 0)
      limit case when v_is_soon = 1 then 1000 end
      -- A locked delivery is being finished, or replayed by another transaction.
      for update of d skip locked
    )
    update app.webhook_deliveries d
    set due_at = core.now(), attempts = 0
    from waiting w
    where d.endpoint_id = endpoint.id and d.event_id = w.event_id;
  end loop;
end
$$;

comment on function core.restart_deliveries is
  'The second half of core.replay: deliveries that wait already restart their schedule and are due now. Skips locked rows.';
