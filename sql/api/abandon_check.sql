create function api.abandon_check(organisation_id uuid, mode text, key text default null, id uuid default null)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.lock_organisations(array[abandon_check.organisation_id]);
  update app.domains d set check_started_at = null
  where d.id = abandon_check.id and d.organisation_id = abandon_check.organisation_id;
  select core.release_key(abandon_check.organisation_id, abandon_check.mode::app.mode, abandon_check.key)
$$;

comment on function api.abandon_check is
  'End a check of a domain that failed, and release the idempotency key of its call.';
