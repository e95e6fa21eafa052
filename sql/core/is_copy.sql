create function core.is_copy(division app.division)
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select division.timeline <> core.server_timeline()
    or division.database <> (select d.oid from pg_database d where d.datname = current_database())
$$;

comment on function core.is_copy is
  'Returns whether this database is a copy of the one in which a division began. It also returns true in the old cell after a failover.';
