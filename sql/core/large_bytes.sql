create function core.large_bytes(bytes bigint)
returns integer
language sql immutable
as $$
  -- Emails up to 64 KB are limited only by the number of jobs of a worker. 16 MB is less than a worker's total
  -- for large emails, so the largest email fits when no other is in progress.
  select case when bytes <= 65536 then 0 else least(bytes, 16777216)::integer end
$$;

comment on function core.large_bytes is
  'Returns how many bytes an email of this size adds to a worker''s total of large emails; 0 if it is not large.';
