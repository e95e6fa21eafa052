create function core.latency_bucket(latency interval)
returns smallint
language sql immutable
as $$
  select ceil(4 * log(2, greatest(1, extract(epoch from latency) * 1000)))::smallint
$$;

comment on function core.latency_bucket is
  'Returns the bucket of app.daily_latencies for a latency: 0 up to 1 ms, then four buckets to a doubling.';
