create function core.check_calls(calls jsonb, round integer, at timestamptz)
returns setof core.checked_call
language sql stable
as $$
  select c.n, c.organisation_id, c.mode, c.key, c.fingerprint, c.batch,
    case
      when k.fingerprint = c.fingerprint then 'replay'
      when k.fingerprint is not null then 'idempotency_conflict'
      when o.state = 'suspended' then 'org_suspended'
      when c.batch and o.state = 'paused' and c.mode = 'live' then 'org_paused'
    end,
    k.status, k.body,
    -- In a single send, problems of the body that only the database sees come before org_paused.
    o.state = 'paused' and c.mode = 'live',
    a.messages_accepted - d.messages_dequeued,
    p.emails_included, p.emails_included - a.emails_used,
    -- After a change to a smaller plan more than all of it may have been used.
    greatest(0, p.sms_included - a.sms_used),
    a.sms_credits,
    a.period_start, a.period_end,
    p.test_messages_daily,
    p.test_messages_daily - case when a.test_day = (at at time zone 'UTC')::date then a.test_messages else 0 end
  from core.calls_of_round(calls, check_calls.round) c
  join app.organisations o on o.id = c.organisation_id
  join app.plans p on p.id = o.plan_id
  join app.allowances a on a.organisation_id = o.id
  join app.counters d on d.organisation_id = o.id
  left join core.stored_response(c.organisation_id, c.mode, c.key, at) k on true
$$;

comment on function core.check_calls is
  'Returns the calls of a round with the state of their organisations, and whether the call as a whole is replayed or refused.';
