create function api.clear_deliveries()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_endpoint_id uuid;
  v_cleared integer;
begin
  -- Pick a disabled endpoint with deliveries.
  select e.id into v_endpoint_id
  from app.webhook_endpoints e
  where e.disabled_at is not null
    and exists (select from app.webhook_deliveries d where d.endpoint_id = e.id)
  limit 1
  -- Skip one that is being enabled.
  for no key update skip locked;
  if not found then
    -- Deliveries of a deleted endpoint, from a transaction that still saw it. Walk the index from endpoint to
    -- endpoint, which reads one row of each.
    with recursive waiting as (
      (select d.endpoint_id from app.webhook_deliveries d order by d.endpoint_id limit 1)
      union all
      select (
        select d.endpoint_id from app.webhook_deliveries d where d.endpoint_id > w.endpoint_id order by d.endpoint_id limit 1)
      from waiting w
      where w.endpoint_id is not null
    )
    select w.endpoint_id into v_endpoint_id
    from waiting w
    -- The last step finds none.
    where w.endpoint_id is not null
      and not exists (select from app.webhook_endpoints e where e.id = w.endpoint_id)
    limit 1;
  end if;

  delete from app.webhook_deliveries d
  where d.endpoint_id = v_endpoint_id and d.event_id in (
    -- Bounded, so that enabling the endpoint never waits for long; the caller calls again.
    select w.event_id from app.webhook_deliveries w where w.endpoint_id = v_endpoint_id limit 5000);
  get diagnostics v_cleared = row_count;
  return v_cleared;
end
$$;

comment on function api.clear_deliveries is
  'Delete the deliveries of an endpoint that is disabled or deleted. Its events are kept and can be replayed once it is enabled. Returns how many, at most 5 000.';
