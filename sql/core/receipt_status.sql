create function core.receipt_status(m app.messages)
-- A table of one row, which Postgres merges into the query: a call for each message took a third longer.
returns table (status app.message_status, delivered_at timestamptz, error_code text, error_message text)
language sql stable
as $$
  with piece as (
    -- One recipient of an email or one part of an SMS. Its outcome is the worst that was reported, and the
    -- first of equal ones: a bounce may follow a delivery, and the receipt of the bounce may arrive before
    -- that of the delivery, which must not undo it. Each order here is total, so that the order in which
    -- receipts arrive makes no difference.
    select
      bool_or(e.type = 'complained') as has_complained,
      (array_agg(e order by e.type = 'delivered', e.type, e.occurred_at, e.provider_event_id)
        filter (where e.type <> 'complained'))[1] as outcome
    from app.events e
    where e.message_id = m.id
      and e.provider_event_id is not null
      and e.type in ('delivered', 'bounced', 'complained', 'failed', 'expired')
    group by e.detail ->> 'recipient', e.detail ->> 'part'
  ),
  message as (
    select
      bool_or(p.has_complained) as has_complained,
      bool_or((p.outcome).type = 'bounced') as has_bounced,
      bool_or((p.outcome).type = 'failed') as has_failed,
      bool_or((p.outcome).type = 'expired') as has_expired,
      count(*) filter (where (p.outcome).type = 'delivered')
        >= case m.channel when 'email' then m.recipients else m.segments end as is_delivered,
      max((p.outcome).occurred_at) filter (where (p.outcome).type = 'delivered') as delivered_at,
      -- The first of the outcomes that give the message its status.
      (array_agg((p.outcome).detail order by (p.outcome).type, (p.outcome).occurred_at, (p.outcome).provider_event_id)
        filter (where (p.outcome).type in ('bounced', 'failed', 'expired')))[1] as problem
    from piece p
  )
  select
    case
      when v.has_complained then 'complained'
      when v.has_bounced then 'bounced'
      when v.has_failed then 'failed'
      when v.has_expired then 'expired'
      when v.is_delivered then 'delivered'
    end::app.message_status,
    case when v.is_delivered then v.delivered_at end,
    case
      when v.has_bounced then case when (v.problem -> 'isHard')::boolean then 'hard_bounce' else 'soft_bounce' end
      when v.has_failed then case m.channel when 'email' then 'provider_rejected' else 'network_rejected' end
      when v.has_expired then 'expired'
    end,
    core.problem_text(v.problem, m.recipients)
  from message v
  -- A message that the service ended itself before it left keeps its status.
  where m.status not in ('rejected', 'scheduled') and (m.status <> 'failed' or m.sent_at is not null)
    -- One copy that arrived proves nothing about the other copies, which may still have to be sent.
    and not (m.status = 'queued' and m.class = 'marketing' and m.channel = 'email' and m.recipients > 1)
$$;

comment on function core.receipt_status is
  'Returns the status of a message that follows from all its receipts, with its time of delivery and error; status is null if none follows, and no row if receipts do not decide it.';
