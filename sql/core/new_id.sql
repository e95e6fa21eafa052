create function core.new_id(at timestamptz)
returns uuid
language sql volatile
as $$
  -- A version 4 UUID whose first 48 bits become Unix milliseconds, and whose version becomes 7.
  select encode(
    set_bit(set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from at) * 1000)::bigint) from 3)
        from 1 for 6
      ), 52, 1), 53, 1),
    'hex'
  )::uuid
$$;

comment on function core.new_id is 'A new UUIDv7 of the given time (RFC 9562); Postgres 15 has none of its own.';
