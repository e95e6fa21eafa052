create function core.make_secret()
returns text
language sql volatile
as $$
  -- A random UUID has 122 random bits, so three of them have more than the 256 bits of the hash.
  select 'whsec_' || encode(sha256(convert_to(
    gen_random_uuid()::text || gen_random_uuid() || gen_random_uuid(), 'UTF8')), 'hex')
$$;

comment on function core.make_secret is
  'Returns a new signing secret. The service seals it with SECRET_KEY later (api.store_sealed_secrets).';
