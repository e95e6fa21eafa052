create function core.sum_volume(changes core.counted_change[])
returns void
language sql volatile
as $$
  select core.add_volume(array_agg(v::app.daily_volume))
  from (
    select c.day, c.organisation_id, c.channel, c.class, g.tag,
      count(*) filter (where c.change = 'queued'),
      count(*) filter (where c.change = 'sent'),
      count(*) filter (where c.change = 'delivered'),
      count(*) filter (where c.change = 'bounced'),
      count(*) filter (where c.change = 'complained'),
      count(*) filter (where c.change = 'failed'),
      count(*) filter (where c.change = 'expired'),
      count(*) filter (where c.change = 'rejected'),
      coalesce(sum(c.units) filter (where c.change = 'queued'), 0)
    from unnest(changes) c
    -- Null is the sum over all messages.
    cross join lateral (select null as tag union select unnest(c.tags)) g
    group by c.day, c.organisation_id, c.channel, c.class, g.tag
  ) v
$$;

comment on function core.sum_volume is 'Add changes to the sums by day, organisation, channel, class and tag.';
