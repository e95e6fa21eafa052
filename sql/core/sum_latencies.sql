create function core.sum_latencies(changes core.counted_change[])
returns void
language sql volatile
as $$
  insert into app.daily_latencies as l (day, organisation_id, channel, stage, bucket, messages)
  select c.day, c.organisation_id, c.channel, c.change, core.latency_bucket(c.latency), count(*)
  from unnest(changes) c
  where c.latency is not null
  -- For each organisation, and with null for all of them together.
  group by grouping sets (
    (c.day, c.organisation_id, c.channel, c.change, core.latency_bucket(c.latency)),
    (c.day, c.channel, c.change, core.latency_bucket(c.latency)))
  on conflict (organisation_id, day, channel, stage, bucket) do update set messages = l.messages + excluded.messages
$$;

comment on function core.sum_latencies is 'Add changes to the histogram of the times from queued to sent and to delivered.';
