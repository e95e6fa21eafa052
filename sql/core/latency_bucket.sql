create function core.latency_bucket(latency interval)
returns smallint
language sql immutable
as $$
  select ceil(4 * log(2, greatest(1, extract(epoch from latency) * 1000)))::smallint
$$;

comment on function core.latency_bucket is 'The bucket of app.daily_latencies for a latency: 0 for up to a millisecond, four to a doubling.';
