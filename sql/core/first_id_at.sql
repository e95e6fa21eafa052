create function core.first_id_at(at timestamptz)
returns uuid
language sql immutable
as $$
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

comment on function core.first_id_at is 'The lower bound of all ids made from that millisecond on.';
