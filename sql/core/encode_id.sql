create function core.encode_id(prefix text, id uuid)
returns text
language plpgsql immutable
as $$
declare
  -- pg_catalog is named because Postgres compiles this function once for each session, possibly for a view whose
  -- reader has types of the same names in the search path.
  v_bytes constant pg_catalog.bytea := uuid_send(id);
  v_text pg_catalog.bytea := '';
  v_bits bigint;
begin
  -- 128 bits are 26 characters of 5 bits with two leading zero bits: first 8 bits, then three times 40. All eight
  -- characters of 40 bits are computed in one word, which takes half the time of a loop over them.
  for v_group in 0 .. 2 loop
    v_bits := (get_byte(v_bytes, v_group * 5 + 1)::bigint << 32) + (get_byte(v_bytes, v_group * 5 + 2)::bigint << 24)
      + (get_byte(v_bytes, v_group * 5 + 3) << 16) + (get_byte(v_bytes, v_group * 5 + 4) << 8) + get_byte(v_bytes, v_group * 5 + 5);
    -- Spread the bits over the bytes of the word: 20 to each half, 10 to each quarter, 5 to each byte.
    v_bits := ((v_bits & x'000000fffff00000'::bigint) << 12) + (v_bits & x'00000000000fffff'::bigint);
    v_bits := ((v_bits & x'000ffc00000ffc00'::bigint) << 6) + (v_bits & x'000003ff000003ff'::bigint);
    v_bits := ((v_bits & x'03e003e003e003e0'::bigint) << 3) + (v_bits & x'001f001f001f001f'::bigint);
    -- From 10 on a letter follows, and from 18, 20, 22 and 27 on the alphabet has left out another one (i, l, o, u).
    -- 64 less such a bound, added to a byte, sets its bit 6 if the byte has reached the bound.
    v_text := v_text || int8send(v_bits + x'3030303030303030'::bigint
      + (((v_bits + x'3636363636363636'::bigint) >> 6) & x'0101010101010101'::bigint) * 39
      + (((v_bits + x'2e2e2e2e2e2e2e2e'::bigint) >> 6) & x'0101010101010101'::bigint)
      + (((v_bits + x'2c2c2c2c2c2c2c2c'::bigint) >> 6) & x'0101010101010101'::bigint)
      + (((v_bits + x'2a2a2a2a2a2a2a2a'::bigint) >> 6) & x'0101010101010101'::bigint)
      + (((v_bits + x'2525252525252525'::bigint) >> 6) & x'0101010101010101'::bigint));
  end loop;
  return prefix || '_' || substr('01234567', (get_byte(v_bytes, 0) >> 5) + 1, 1)
    || substr('0123456789abcdefghjkmnpqrstvwxyz', (get_byte(v_bytes, 0) & 31) + 1, 1) || convert_from(v_text, 'UTF8');
end
$$;

comment on function core.encode_id is
  'Returns an ID as callers see it, a TypeID: the prefix and 26 characters of Crockford''s base32. In plpgsql because a function in SQL costs forty times as much when it is called for each row.';
