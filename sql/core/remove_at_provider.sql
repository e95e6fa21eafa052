create function core.remove_at_provider(email text, organisations uuid[])
returns integer
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
  -- Tried again from the start.
  on conflict on constraint suppression_removals_pkey do update set tried_at = null;
  return core.enqueue_suppression_removals(array(
    select o.id from unnest(v_organisations) o (id)
    -- One job for each organisation at a time, which enqueues the next itself.
    where not exists (
      select from graphile_worker._private_jobs j
      where j.key = 'remove_suppression:' || o.id and (j.is_available or j.locked_at is not null))));
end
$$;

comment on function core.remove_at_provider is
  'Have the provider''s own suppression of an address removed from the domains of these organisations, by one job at a time for each organisation. Answers how many jobs were enqueued.';
