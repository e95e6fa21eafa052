create function core.answered_sms(
  phone text, sender text, out organisation_id uuid, out message_id uuid, out is_rehearsal boolean
)
language sql stable
set enable_seqscan = off
as $$
  with reached as materialized (
    select m.id, m.organisation_id, m.from_address, m.is_rehearsal
    from app.messages m
    where m.channel = 'sms' and m.to_address = answered_sms.phone and m.mode = 'live'
      and (m.sent_at is not null or m.handover_started_at is not null)
      and m.id >= core.first_id_at(core.now() - interval '90 days')
  ),
  meant as (
    select 0 as rank, s.organisation_id, null::uuid as message_id
    from app.senders s
    where s.sender = answered_sms.sender and s.sender like '+%'
    union all
    select 1, r.organisation_id, r.id
    from reached r
    where r.from_address = answered_sms.sender
    union all
    -- Networks have numbers of their own for replies to senders that cannot be written to.
    select 2, r.organisation_id, r.id
    from reached r
    where r.from_address not like '+%'
      and not exists (
        select from app.sms_settings s where s.shared_sender = answered_sms.sender
        union all
        select from app.senders s where s.sender = answered_sms.sender)
    order by rank, message_id desc
    limit 1
  )
  select i.organisation_id, l.id, coalesce(l.is_rehearsal, false)
  from meant i
  left join lateral (
    select r.id, r.is_rehearsal from reached r
    where r.organisation_id = i.organisation_id
    order by r.id desc
    limit 1
  ) l on true
$$;

comment on function core.answered_sms is
  'Whom a phone means that writes to a sender ID: the organisation that owns the number, else the one whose SMS came last from it within 90 days; with that organisation''s last SMS to the phone. Nulls when nobody is meant.';
