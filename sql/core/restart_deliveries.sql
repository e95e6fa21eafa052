create function core.restart_deliveries(endpoint app.webhook_endpoints, events uuid[])
returns void
language plpgsql volatile
as $$
declare
  v_soon constant timestamptz := core.now() + interval '5 minutes';
begin
  -- First what does not fall due before this is through; at the very end what may be in hand by now.
  -- That is due anyway: no more of it has all its attempts before it again than is done in a moment.
  for v_is_soon in 0 .. 1 loop
    with waiting as (
      select d.event_id
      from unnest(events) e (id)
      join app.webhook_deliveries d on d.endpoint_id = endpoint.id and d.event_id = e.id
      where (d.due_at <= v_soon) = (v_is_soon = 1) and (d.due_at > core.now() or d.attempts > 0)
      limit case when v_is_soon = 1 then 1000 end
      -- What is locked is being finished, or replayed by somebody else.
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
  'The second half of core.replay: what waits already has a fresh schedule, and is due for the job of the first. Waits for nobody.';
