create function core.remove_at_provider(email text, organisations uuid[])
returns void
language plpgsql volatile
as $$
declare
  v_organisations uuid[] := array(
    select distinct o.id from unnest(organisations) o (id)
    where exists (select from app.domains d where d.organisation_id = o.id)
    order by o.id);
begin
  perform pg_advisory_xact_lock(core.suppression_removal_lock(o.id)) from unnest(v_organisations) o (id);
  insert into app.suppression_removals (organisation_id, email)
  select o.id, remove_at_provider.email from unnest(v_organisations) o (id)
  -- The removal restarts with its full number of attempts.
  on conflict on constraint suppression_removals_pkey do update set tried_at = null;
  perform core.enqueue_suppression_removals(array(
    select o.id from unnest(v_organisations) o (id)
    -- Each organisation has one job at a time, which enqueues the next.
    where not exists (
      select from graphile_worker._private_jobs j
      where j.key = 'remove_suppression:' || o.id and (j.is_available or j.locked_at is not null))));
end
$$;

comment on function core.remove_at_provider is
  'Enqueue the removal of an address from the provider''s suppression list, for the domains of these organisations. Each has at most one job.';
