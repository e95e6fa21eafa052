create function core.unsummed_volume(organisation_id uuid)
returns setof app.daily_volume
language sql stable
set enable_seqscan = off
as $$
  with newest as (
    select m.id
    from app.messages m
    where m.organisation_id = unsummed_volume.organisation_id
    order by m.id desc
    limit 1000
  ),
  -- No index: 20 000 changes are what the clock sums next. Beyond that the sums are behind for everybody.
  waiting as (
    select i.message_id, c.change, c.occurred_at
    from app.status_changes c
    cross join unnest(coalesce(c.message_ids, array[c.message_id])) i (message_id)
    limit 20000
  )
  select v.*
  from core.volume_of(core.counted_changes(array(
    select row(w.message_id, w.change, w.occurred_at)::core.unsummed_change
    from waiting w
    join newest n on n.id = w.message_id))) v
$$;

comment on function core.unsummed_volume is
  'Returns what the clock has not added to app.daily_volume yet, of the newest 1 000 messages of an organisation.';
