create function api.applied_migrations()
returns setof text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id from app.migrations m order by m.id
$$;

comment on function api.applied_migrations is
  'Returns the ids of the applied migrations. An id that a process does not know comes from a newer version.';
