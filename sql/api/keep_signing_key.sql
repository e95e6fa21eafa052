create function api.keep_signing_key(id uuid, identity jsonb, records jsonb)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform from app.domains d where d.id = keep_signing_key.id for no key update;
  perform core.keep_identity(keep_signing_key.id, keep_signing_key.identity);
  update app.domains d set records = keep_signing_key.records
  where d.id = keep_signing_key.id and d.records = '[]';
  return found::integer;
end
$$;

comment on function api.keep_signing_key is
  'Keep the identity of a domain that was made because an email needs its DKIM key, unless another process was faster; identity as core.keep_identity takes it. Answers whether its records were kept with it.';
