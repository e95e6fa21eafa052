create function core.sum_volume(changes core.counted_change[])
returns void
language sql volatile
as $$
  select core.add_volume(array_agg(v)) from core.volume_of(changes) v
$$;

comment on function core.sum_volume is 'Add changes to the sums by day, organisation, channel, class and tag.';
