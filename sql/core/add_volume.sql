create function core.add_volume(volume app.daily_volume[])
returns void
language sql volatile
as $$
  insert into app.daily_volume as v (
    day, organisation_id, channel, class, tag,
    accepted, sent, delivered, bounced, complained, failed, expired, rejected, units
  )
  select n.day, n.organisation_id, n.channel, n.class, n.tag,
    n.accepted, n.sent, n.delivered, n.bounced, n.complained, n.failed, n.expired, n.rejected, n.units
  from unnest(volume) n
  on conflict (day, organisation_id, channel, class, tag) do update set
    accepted = v.accepted + excluded.accepted,
    sent = v.sent + excluded.sent,
    delivered = v.delivered + excluded.delivered,
    bounced = v.bounced + excluded.bounced,
    complained = v.complained + excluded.complained,
    failed = v.failed + excluded.failed,
    expired = v.expired + excluded.expired,
    rejected = v.rejected + excluded.rejected,
    units = v.units + excluded.units
$$;

comment on function core.add_volume is
  'Add rows to the sums of messages by day; each key at most once. The caller holds the lock of the reports.';
