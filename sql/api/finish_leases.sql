create function api.finish_leases(results jsonb, leases jsonb)
returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select unnest(f.released) from core.finish_deliveries(results, leases) f;
end
$$;

comment on function api.finish_leases is
  'Record the results of attempts, and release those of these leases at whose endpoints nothing is due any more (core.finish_deliveries); each lease''s endpoint must have a result. Returns the endpoints whose leases were released.';
