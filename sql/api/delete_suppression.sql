create function api.delete_suppression(organisation_id uuid, id text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.delete_suppression(delete_suppression.organisation_id, delete_suppression.id)
$$;

comment on function api.delete_suppression is
  'Remove an organisation''s own suppression, here and at the provider. If the address has another reason, a new entry is created for that. Refuses not_found, also for an entry that a hard bounce created.';
