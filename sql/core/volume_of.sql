create function core.volume_of(changes core.counted_change[])
returns setof app.daily_volume
language sql immutable
as $$
  select c.day, c.organisation_id, c.channel, c.class, g.tag,
    count(*) filter (where c.change = 'queued'),
    count(*) filter (where c.change = 'sent'),
    count(*) filter (where c.change = 'delivered'),
    count(*) filter (where c.change = 'bounced'),
    count(*) filter (where c.change = 'complained'),
    count(*) filter (where c.change = 'failed'),
    count(*) filter (where c.change = 'expired'),
    count(*) filter (where c.change = 'rejected'),
    coalesce(sum(c.units) filter (where c.change = 'queued'), 0)::bigint
  from unnest(changes) c
  -- Null is the sum over all messages.
  cross join lateral (select null as tag union select unnest(c.tags)) g
  group by c.day, c.organisation_id, c.channel, c.class, g.tag
$$;

comment on function core.volume_of is 'Returns the sums of changes by day, organisation, channel, class and tag.';
