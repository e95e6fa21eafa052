create function api.health()
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select c.sha256 from app.code c
$$;

comment on function api.health is 'The SHA-256 of the SQL code in place; a process whose own differs is of another version.';
