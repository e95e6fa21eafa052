create function api.applied_migrations()
returns setof text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id from app.migrations m order by m.id
$$;

comment on function api.applied_migrations is
  'Returns the IDs of the applied migrations. An ID that a process does not know belongs to a newer version.';
