create function api.abandon_check(organisation_id uuid, mode text, key text default null)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.lock_organisations(array[abandon_check.organisation_id]);
  return core.release_key(abandon_check.organisation_id, abandon_check.mode::app.mode, abandon_check.key);
end
$$;

comment on function api.abandon_check is
  'Release the key of a check that came to nothing. Answers how many keys were released.';
