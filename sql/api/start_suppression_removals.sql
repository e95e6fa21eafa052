create function api.start_suppression_removals(organisation_id uuid)
returns setof api.suppression_removal
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with taken as (
    update app.suppression_removals s set tried_at = clock_timestamp()
    where s.organisation_id = start_suppression_removals.organisation_id and s.email = any (array(
      select n.email from app.suppression_removals n
      where n.organisation_id = start_suppression_removals.organisation_id
      -- Addresses that failed come after those not tried yet.
      order by n.tried_at nulls first, n.email
      limit 10))
    returning s.email
  )
  select t.email, array(
    select d.name from app.domains d where d.organisation_id = start_suppression_removals.organisation_id order by d.name)
  from taken t
  order by t.email
$$;

comment on function api.start_suppression_removals is
  'Returns at most 10 addresses to remove from the provider''s suppression list for an organisation, with their domains.';
