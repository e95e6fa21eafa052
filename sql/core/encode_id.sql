create function core.encode_id(prefix text, id uuid)
returns text
language plpgsql immutable
as $$
declare
  -- pg_catalog is named because Postgres compiles this function once for each session, possibly for a view whose
  -- reader has types of the same names in the search path.
  v_alphabet constant pg_catalog.bytea := '0123456789abcdefghjkmnpqrstvwxyz';
  v_bytes constant pg_catalog.bytea := uuid_send(id);
  v_text pg_catalog.bytea := '00000000000000000000000000';
  v_bits bigint;
begin
  -- 128 bits are 26 characters of 5 bits with two leading zero bits: first 8 bits, then three times 40.
  v_text := set_byte(v_text, 0, get_byte(v_alphabet, get_byte(v_bytes, 0) >> 5));
  v_text := set_byte(v_text, 1, get_byte(v_alphabet, get_byte(v_bytes, 0) & 31));
  for v_group in 0 .. 2 loop
    v_bits := ('x' || encode(substring(v_bytes from v_group * 5 + 2 for 5), 'hex'))::bit(40)::bigint;
    for v_place in 0 .. 7 loop
      v_text := set_byte(v_text, 2 + v_group * 8 + v_place,
        get_byte(v_alphabet, (v_bits >> (35 - 5 * v_place) & 31)::integer));
    end loop;
  end loop;
  return prefix || '_' || convert_from(v_text, 'UTF8');
end
$$;

comment on function core.encode_id is
  'Returns an ID as callers see it, a TypeID: the prefix and 26 characters of Crockford''s base32. In plpgsql because a function in SQL costs forty times as much when it is called for each row.';
