create function core.claim_leases(leases core.lease[])
returns core.lease[]
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  perform core.lock_endpoints(array(select l.endpoint_id from unnest(leases) l));
  return array(
    -- Of several jobs that ask at once: the one that has the lease, else the oldest.
    select distinct on (l.endpoint_id) l
    from unnest(leases) l
    join app.webhook_endpoints e on e.id = l.endpoint_id and e.disabled_at is null
    -- A process that was taken for dead, but is not, may ask for a job that another one has by now.
    join graphile_worker._private_jobs j on j.id = l.job and j.locked_by = l.worker
    where e.lease_job_id = l.job
      or e.lease_job_id is null
      -- A lease ends when its job is gone or no longer locked.
      or not exists (
        select from graphile_worker._private_jobs h where h.id = e.lease_job_id and h.locked_at is not null)
    order by l.endpoint_id, e.lease_job_id is distinct from l.job, l.job);
end
$$;

comment on function core.claim_leases is
  'Lock the endpoints of these leases. Returns the leases that their jobs have already or may have now; the caller writes them down.';
