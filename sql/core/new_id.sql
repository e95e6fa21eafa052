create function core.new_id(at timestamptz)
returns uuid
language sql volatile
as $$
  -- A UUIDv4 whose first 48 bits are replaced by Unix milliseconds and whose version by 7. Milliseconds are
  -- rounded down, as core.iso shows them, so that a search by a time of the API finds its messages.
  select encode(
    set_bit(set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3)
        from 1 for 6
      ), 52, 1), 53, 1),
    'hex'
  )::uuid
$$;

comment on function core.new_id is
  'Returns a new UUIDv7 with the given time (RFC 9562). Postgres has no such function before version 18.';
