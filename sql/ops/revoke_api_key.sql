create function ops.revoke_api_key(key_or_prefix text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keys app.api_keys[];
begin
  select array_agg(k) into v_keys
  from app.api_keys k
  where k.revoked_at is null
    and (k.sha256 = sha256(convert_to(key_or_prefix, 'UTF8')) or k.prefix = key_or_prefix);
  if v_keys is null then
    raise exception 'no valid API key matches; it may be revoked already'
      using hint = 'select prefix, organisation, revoked_at from ops.api_keys';
  elsif cardinality(v_keys) > 1 then
    raise exception 'several keys start with %; give the whole key', quote_literal(key_or_prefix);
  end if;
  update app.api_keys k set revoked_at = core.now() where k.id = v_keys[1].id;
  perform core.audit('revoke_api_key', v_keys[1].organisation_id, v_keys[1].prefix,
    '{"revoked_at": null}', jsonb_build_object('revoked_at', core.iso(core.now())));
  return v_keys[1].prefix;
end
$$;

comment on function ops.revoke_api_key is
  'Revoke an API key, given whole or by its first 16 characters. Requests with the key are refused immediately. Returns the first 16 characters.';
