create function core.erase_tags(person text)
returns integer
language plpgsql volatile
as $$
#variable_conflict use_column
declare
  v_rows integer;
begin
  -- Sums are added to under this lock; the clock passes them over meanwhile.
  perform pg_advisory_xact_lock(hashtextextended('postgram reports', 0));
  with named as (
    delete from app.daily_volume v
    where strpos(lower(v.tag), person) > 0 and core.unnamed(v.tag, person) <> v.tag
    returning v.*
  ),
  unnamed as (
    insert into app.daily_volume as v (
      day, organisation_id, channel, class, tag,
      accepted, sent, delivered, bounced, complained, failed, expired, rejected
    )
    select n.day, n.organisation_id, n.channel, n.class, core.unnamed(n.tag, person),
      sum(n.accepted), sum(n.sent), sum(n.delivered), sum(n.bounced), sum(n.complained), sum(n.failed),
      sum(n.expired), sum(n.rejected)
    from named n
    group by n.day, n.organisation_id, n.channel, n.class, core.unnamed(n.tag, person)
    -- Somebody else's tag, who was erased before.
    on conflict (day, organisation_id, channel, class, tag) do update set
      accepted = v.accepted + excluded.accepted,
      sent = v.sent + excluded.sent,
      delivered = v.delivered + excluded.delivered,
      bounced = v.bounced + excluded.bounced,
      complained = v.complained + excluded.complained,
      failed = v.failed + excluded.failed,
      expired = v.expired + excluded.expired,
      rejected = v.rejected + excluded.rejected
  )
  select count(*) into v_rows from named;
  return v_rows;
end
$$;

comment on function core.erase_tags is
  'Take a person out of the tags by which messages are counted; what was counted stays. Answers how many rows.';
