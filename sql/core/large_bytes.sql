create function core.large_bytes(bytes bigint)
returns integer
language sql immutable
as $$
  -- Of emails up to 64 KB a worker may have as many in hand as it takes jobs. 16 MB are less than it may have
  -- in hand of large ones: the largest email fits when no other is in hand.
  select case when bytes <= 65536 then 0 else least(bytes, 16777216)::integer end
$$;

comment on function core.large_bytes is
  'What an email of so many bytes counts against the large ones that a worker has in hand; 0 when it is not large.';
