create function core.large_bytes(bytes bigint)
returns integer
language sql immutable
as $$
  -- A worker may have in hand as many emails of up to 64 KB as it takes jobs. The largest email counts 16 MB,
  -- which is less than a worker may have in hand, so it fits when no other is.
  select case when bytes <= 65536 then 0 else least(bytes, 16777216)::integer end
$$;

comment on function core.large_bytes is
  'The bytes that an email counts against the limit of large bodies which a worker has in hand; 0 when it is not large.';
