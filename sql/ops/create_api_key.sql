create function ops.create_api_key(
  organisation text, mode text default 'live',
  scopes text[] default '{emails:send,sms:send,read,domains:write}'
)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_key text;
begin
  if create_api_key.mode is null or create_api_key.mode not in ('live', 'test') then
    raise exception 'the mode must be live or test';
  end if;
  if coalesce(cardinality(create_api_key.scopes), 0) = 0
    or not create_api_key.scopes <@ enum_range(null::app.scope)::text[] then
    raise exception 'the scopes must be one or more of %', array_to_string(enum_range(null::app.scope), ', ');
  end if;
  -- Two random UUIDs are 244 bits from the server's strong random source. No hexadecimal digit is an underscore, so
  -- a router tells keys of other cells from those of cell 1 by their first 10 characters.
  v_key := 'sk_' || create_api_key.mode || '_'
    || (select case when c.number > 1 then c.letter || '_' else '' end from app.cell c)
    || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
  insert into app.api_keys (id, organisation_id, mode, scopes, prefix, sha256)
  values (core.new_id(core.now()), v_organisation, create_api_key.mode::app.mode,
    create_api_key.scopes::app.scope[], left(v_key, 16), sha256(convert_to(v_key, 'UTF8')));
  perform core.audit('create_api_key', v_organisation, left(v_key, 16), null,
    jsonb_build_object('mode', create_api_key.mode, 'scopes', create_api_key.scopes));
  return v_key;
end
$$;

comment on function ops.create_api_key is
  'Create an API key and return it. The key is shown only once; the database stores only its hash. The mode is live or test. The scopes default to all of them: emails:send, sms:send, read and domains:write. Keys of the second and further cells begin with sk_live_b_, sk_live_c_ and so on.';
