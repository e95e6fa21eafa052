create function api.release_leases(turns jsonb)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_turns core.turn[] := array(select t from jsonb_populate_recordset(null::core.turn, turns) t);
  v_now timestamptz;
begin
  v_turns := core.claim_leases(v_turns);
  v_now := core.clock();
  update app.webhook_endpoints e
  set lease_job_id = null
  from unnest(v_turns) t
  where e.id = t.endpoint_id and e.lease_job_id is not null;

  return core.add_jobs((
    select array_agg(core.delivery_job(e, now() + make_interval(secs => t.pause_seconds), t.pause_seconds > 0))
    from unnest(v_turns) t
    join app.webhook_endpoints e on e.id = t.endpoint_id
    where e.disabled_at is null and exists (
      select from app.webhook_deliveries d where d.endpoint_id = e.id and d.due_at <= v_now)), keeps_time => true);
end
$$;

comment on function api.release_leases is
  'Give up the turns of jobs, {endpoint_id, job, worker, pause_seconds}, so that others have theirs; what is due there gets a job behind theirs, after the pause. Answers how many such jobs there are.';
