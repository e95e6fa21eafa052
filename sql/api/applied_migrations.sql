create function api.applied_migrations()
returns setof text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id from app.migrations m order by m.id
$$;

comment on function api.applied_migrations is
  'The migrations that this database has: one that a version does not know is of a newer version.';
