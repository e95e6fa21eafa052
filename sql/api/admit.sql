create function api.admit(keys text[])
returns setof core.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select * from core.admit(keys);
end
$$;

comment on function api.admit is
  'Returns the organisation, mode and scopes of each of these keys (SHA-256 in hex). Counts each request against the 100 per second of its organisation, and records the day of the key''s last use. Returns no row for a key that is unknown or revoked.';
