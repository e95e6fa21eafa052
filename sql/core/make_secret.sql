create function core.make_secret(out secret text, out sealed text)
language plpgsql volatile
as $$
declare
  v_key app.sealing_keys;
  v_number numeric := 0;
  v_power numeric;
begin
  select * into v_key from app.sealing_keys k order by k.created_at desc, k.id desc limit 1;
  if not found then
    raise exception 'there is no key yet to seal a secret with' using hint = 'start the service once, with the command "start"';
  end if;
  -- 63 times the first 32 bits of a random UUID: 2 016 bits, so that it is below the modulus.
  for v_part in 1 .. 63 loop
    v_number := v_number * 4294967296 + ('x' || left(gen_random_uuid()::text, 8))::bit(32)::bigint;
  end loop;
  -- To the power of 65 537, by squaring.
  v_power := v_number;
  for v_bit in 1 .. 16 loop
    v_power := v_power * v_power % v_key.modulus;
  end loop;
  v_power := v_power * v_number % v_key.modulus;

  secret := 'whsec_' || encode(sha256(convert_to(v_number::text, 'UTF8')), 'hex');
  sealed := v_key.id || '.' || v_power;
end
$$;

comment on function core.make_secret is
  'A signing secret to show once, and what to keep of it: a random number encrypted with the public key in use (RSA-KEM, ISO/IEC 18033-2), whose hash is the secret. Only the service can open that (src/webhooks/secrets.ts), so that psql can make secrets which the database cannot tell.';
