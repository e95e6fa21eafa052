create function core.id_time(id uuid)
returns timestamptz
language sql immutable
as $$
  select to_timestamp((('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint) / 1000.0)
$$;

comment on function core.id_time is 'Returns the time in a UUIDv7, to the millisecond.';
