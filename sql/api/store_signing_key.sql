create function api.store_signing_key(id uuid, identity jsonb, records jsonb)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from app.domains d where d.id = store_signing_key.id for no key update;
  perform core.store_identity(store_signing_key.id, store_signing_key.identity);
  update app.domains d set records = store_signing_key.records
  where d.id = store_signing_key.id and d.records = '[]';
end
$$;

comment on function api.store_signing_key is
  'Store the identity of a domain that was created because an email needs its DKIM key, unless another process was faster.';
