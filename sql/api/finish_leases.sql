-- Locks, in this order: webhook endpoints by id, then their deliveries.
create function api.finish_leases(results jsonb, leases jsonb)
returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_now timestamptz;
begin
  perform core.finish_deliveries(results);
  -- The endpoints are locked now. What falls due after this look brings a job that finds the lease released.
  v_now := core.clock();
  return query
  update app.webhook_endpoints e
  set lease_job_id = null
  from jsonb_populate_recordset(null::core.held_lease, leases) l
  where e.id = l.endpoint_id and e.lease_job_id = l.job and e.disabled_at is null
    and not exists (
      select from app.webhook_deliveries d where d.endpoint_id = e.id and d.due_at <= v_now)
  returning e.id;
end
$$;

comment on function api.finish_leases is
  'Record the results of attempts (core.finish_deliveries), and release those of these leases at whose endpoints nothing is due any more; each lease''s endpoint must have a result. Returns the endpoints whose leases were released.';
