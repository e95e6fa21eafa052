create function api.health()
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select c.sha256 from app.code c
$$;

comment on function api.health is
  'Returns the SHA-256 of the installed SQL code. A process with another SHA-256 is of another version.';
