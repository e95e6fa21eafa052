create function core.claim_leases(turns core.turn[])
returns core.turn[]
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  perform core.lock_endpoints(array(select t.endpoint_id from unnest(turns) t));
  return array(
    -- Of several that ask at once the one that has the turn, else the oldest.
    select distinct on (t.endpoint_id) t
    from unnest(turns) t
    join app.webhook_endpoints e on e.id = t.endpoint_id and e.disabled_at is null
    -- A process that was taken for gone, but is not, may ask for a job that another one has by now.
    join graphile_worker._private_jobs j on j.id = t.job and j.locked_by = t.worker
    where e.lease_job_id = t.job
      or e.lease_job_id is null
      or not exists (
        select from graphile_worker._private_jobs h where h.id = e.lease_job_id and h.locked_at is not null)
    order by t.endpoint_id, e.lease_job_id is distinct from t.job, t.job);
end
$$;

comment on function core.claim_leases is
  'Lock the endpoints that these turns are about; those turns that their jobs have, or may have because nobody has: no job that is locked is written down as the holder.';
