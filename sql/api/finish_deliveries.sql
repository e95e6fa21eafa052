create function api.finish_deliveries(results jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select f.delivered from core.finish_deliveries(results) f
$$;

comment on function api.finish_deliveries is
  'Record the results of attempts (core.finish_deliveries). Returns how many succeeded.';
