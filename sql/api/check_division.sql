create function api.check_division()
returns text
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.check_division()
$$;

comment on function api.check_division is
  'Returns why this process cannot start; null unless the cell is being divided. Otherwise the connection, which the process keeps open, keeps divisions from beginning. Called before the process accepts anything.';
