create function core.suppress_recipients(receipts core.stored_receipt[])
returns void
language plpgsql volatile
as $$
begin
  -- Most callers have none: both inserts would cost for nothing.
  if cardinality(receipts) = 0 then
    return;
  end if;
  perform core.add_hard_bounces(array(
    select row(lower(e.detail ->> 'recipient'), left(coalesce(e.detail ->> 'text', ''), 2000), e.message_id)::core.hard_bounce
    from unnest(receipts) e
    where e.type = 'bounced' and e.detail ? 'recipient'));

  insert into app.suppressions as s (id, organisation_id, email, reason, other_reasons, message_id, note, created_at)
  select core.new_id(core.now()), g.organisation_id, g.email, g.reasons[1], g.reasons[2:], g.message_id, g.note, core.now()
  from (
    select r.organisation_id, r.email, core.ranked_reasons(array_agg(r.reason)) as reasons,
      (array_agg(r.message_id order by r.reason))[1] as message_id, (array_agg(r.note order by r.reason))[1] as note
    from (
      select m.organisation_id, m.id as message_id, lower(e.detail ->> 'recipient') as email,
        left(coalesce(e.detail ->> 'text', ''), 2000) as note,
        case e.type
          when 'bounced' then 'hard_bounce'
          when 'complained' then 'complaint'
          when 'opted_out' then 'unsubscribe'
        end::app.suppression_reason as reason
      from unnest(receipts) e
      -- Opt-outs of SMS are in app.consents.
      join app.messages m on m.id = e.message_id and m.channel = 'email'
      where e.detail ? 'recipient'
    ) r
    group by r.organisation_id, r.email
  ) g
  order by g.organisation_id, g.email
  on conflict on constraint suppressions_one_per_address do update
    set (reason, other_reasons, message_id, note) = (
      select a.reasons[1], a.reasons[2:],
        case a.reasons[1] when s.reason then s.message_id else excluded.message_id end,
        case a.reasons[1] when s.reason then s.note else excluded.note end
      from (select core.ranked_reasons(s.other_reasons || s.reason || excluded.other_reasons || excluded.reason) as reasons) a)
    where not ((excluded.other_reasons || excluded.reason) <@ (s.other_reasons || s.reason));
end
$$;

comment on function core.suppress_recipients is
  'Suppress the recipients of hard bounces, for everyone, and of complaints and opt-outs, for the organisation. An address that is listed for another reason keeps both reasons.';
