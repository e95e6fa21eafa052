create function core.sms_replied_to(
  phone text, sender text, out organisation_id uuid, out message_id uuid, out is_sandbox boolean
)
language sql stable
set enable_seqscan = off
as $$
  with reached as materialized (
    select m.id, m.organisation_id, m.from_address, m.is_sandbox
    from app.messages m
    where m.channel = 'sms' and m.to_address = sms_replied_to.phone and m.mode = 'live'
      and (m.sent_at is not null or m.attempt_started_at is not null)
      and m.id >= core.first_id_at(core.now() - interval '90 days')
  ),
  meant as (
    select 0 as rank, s.organisation_id, null::uuid as message_id
    from app.senders s
    where s.sender = sms_replied_to.sender and s.sender like '+%'
    union all
    select 1, d.organisation_id, null
    from app.moved_organisations d
    where sms_replied_to.sender = any (d.numbers)
    union all
    select 2, r.organisation_id, r.id
    from reached r
    where r.from_address = sms_replied_to.sender
    union all
    -- Networks route replies to an alphanumeric sender ID to a number of their own.
    select 3, r.organisation_id, r.id
    from reached r
    where r.from_address not like '+%'
      and not exists (
        select from app.sms_settings s where s.shared_sender = sms_replied_to.sender
        union all
        select from app.senders s where s.sender = sms_replied_to.sender)
    order by rank, message_id desc
    limit 1
  )
  select i.organisation_id, l.id, coalesce(l.is_sandbox, false)
  from meant i
  left join lateral (
    select r.id, r.is_sandbox from reached r
    where r.organisation_id = i.organisation_id
    order by r.id desc
    limit 1
  ) l on true
$$;

comment on function core.sms_replied_to is
  'Returns the organisation that a phone replies to: the one that owns the number, also if it moved to another cell, else the one whose SMS from this sender ID reached the phone last, within 90 days. Includes that organisation''s last SMS to the phone. Nulls if there is none.';
