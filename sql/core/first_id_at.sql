create function core.first_id_at(at timestamptz)
returns uuid
language sql immutable
as $$
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

comment on function core.first_id_at is
  'Returns the lower bound of all UUIDv7 made from this millisecond on.';
