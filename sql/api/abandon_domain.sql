create function api.abandon_domain(id uuid, organisation_id uuid, mode text, key text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  perform core.lock_organisations(array[abandon_domain.organisation_id]);
  delete from app.domains d
  where d.id = abandon_domain.id and d.organisation_id = abandon_domain.organisation_id and d.change = 'adding'
  returning d.name into v_name;
  perform core.update_name_claim(v_name);
  perform core.release_key(abandon_domain.organisation_id, abandon_domain.mode::app.mode, abandon_domain.key);
end
$$;

comment on function api.abandon_domain is
  'Remove a reserved domain and release the idempotency key of its call, because the call to the provider failed.';
