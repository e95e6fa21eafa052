create function api.finish_suppression_removals(organisation_id uuid, emails text[], job text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(core.suppression_removal_lock(finish_suppression_removals.organisation_id));
  delete from app.suppression_removals s
  where s.organisation_id = finish_suppression_removals.organisation_id and s.email = any (emails);
  if job is null then
    return;
  end if;
  -- The worker deletes the job a moment later anyway. A session that adds an address must see that this job is over.
  delete from graphile_worker._private_jobs j where j.id = job::bigint;
  perform core.enqueue_suppression_removals(array(
    select finish_suppression_removals.organisation_id
    where exists (
      select from app.suppression_removals s where s.organisation_id = finish_suppression_removals.organisation_id)));
end
$$;

comment on function api.finish_suppression_removals is
  'Record that the provider has removed these addresses. job is the job that has processed all its addresses; the next job is enqueued if addresses remain.';
