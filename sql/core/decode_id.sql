create function core.decode_id(prefix text, id text)
returns uuid
language plpgsql immutable
as $$
begin
  return (
    select encode(substring(bits.value from 1 for 8) || substring(bits.value from 9 for 8), 'hex')::uuid
    from (
      select int8send(substring(b.bits from 3 for 64)::bit(64)::bigint)
          || int8send(substring(b.bits from 67 for 64)::bit(64)::bigint) as value
      from (
        select string_agg((strpos('0123456789abcdefghjkmnpqrstvwxyz', c.letter) - 1)::bit(5)::text, ''
                          order by c.place)::bit varying as bits
        from unnest(string_to_array(substr(id, length(prefix) + 2), null))
          with ordinality as c (letter, place)
      ) b
      where id ~ ('^' || prefix || '_[0-7][0-9a-hjkmnp-tv-z]{25}$')
    ) bits
  );
end
$$;

comment on function core.decode_id is
  'Returns the UUID of an ID with the given prefix; null if the text is not such an ID. In plpgsql for the reason given for core.encode_id.';
