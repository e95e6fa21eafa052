-- Locks: webhook endpoints by id.
create function api.release_leases(leases jsonb)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_leases core.lease[] := array(select l from jsonb_populate_recordset(null::core.lease, leases) l);
  v_now timestamptz;
begin
  -- Release only leases that their jobs have, or may have.
  v_leases := core.claim_leases(v_leases);
  v_now := core.clock();
  update app.webhook_endpoints e
  set lease_job_id = null
  from unnest(v_leases) l
  where e.id = l.endpoint_id and e.lease_job_id is not null;

  -- Enqueue a job for each endpoint where something is due.
  return core.add_jobs((
    select array_agg(core.delivery_job(e, now() + make_interval(secs => l.pause_seconds), l.pause_seconds > 0))
    from unnest(v_leases) l
    join app.webhook_endpoints e on e.id = l.endpoint_id
    where e.disabled_at is null and exists (
      select from app.webhook_deliveries d where d.endpoint_id = e.id and d.due_at <= v_now)), keeps_time => true);
end
$$;

comment on function api.release_leases is
  'Release the leases of jobs, so that other jobs get them. An endpoint where something is due gets a new job, after the pause and behind the jobs that wait already. Returns how many such jobs there are.';
