create function core.charge_sms(accepted core.judged_sms[], at timestamptz)
returns void
language plpgsql volatile
as $$
begin
  insert into app.credit_ledger (organisation_id, kind, credits, included, balance, period_start, message_id, created_at)
  select a.organisation_id, 'sms', -a.credits, a.credits - a.price, a.credits_left, a.period_start, a.id, charge_sms.at
  from unnest(accepted) a
  where a.mode = 'live' and a.price > 0
  order by a.n, a.index;

  update app.allowances a
  set sms_used = a.sms_used + u.included, sms_credits = a.sms_credits - u.credits,
    messages_accepted = a.messages_accepted + u.messages,
    test_messages = u.free + case when a.test_day = u.day then a.test_messages else 0 end, test_day = u.day
  from (
    select s.organisation_id, coalesce(sum(s.credits) filter (where s.mode = 'live'), 0) as credits,
      coalesce(sum(s.price - s.credits) filter (where s.mode = 'live'), 0) as included,
      count(*) filter (where s.mode = 'live' and s.scheduled_at is null) as messages,
      count(*) filter (where s.is_free) as free, (charge_sms.at at time zone 'UTC')::date as day
    from unnest(accepted) s
    group by s.organisation_id
  ) u
  where a.organisation_id = u.organisation_id;
end
$$;

comment on function core.charge_sms is
  'Charge accepted SMS to the allowances and credits of their organisations, which must be locked, with a ledger row for each that costs something.';
