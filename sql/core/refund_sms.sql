create function core.refund_sms(ids uuid[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  -- Most calls have only emails or unpaid SMS; then no organisation is locked.
  if not exists (select from app.credit_ledger l where l.message_id = any (ids)) then
    return;
  end if;
  perform core.lock_organisations(array(
    select distinct l.organisation_id from app.credit_ledger l where l.message_id = any (ids)));

  with given_back as (
    insert into app.credit_ledger (organisation_id, kind, credits, included, balance, period_start, message_id, created_at)
    select d.organisation_id, 'refund', -d.credits,
      -- The allowance of an ended period is not given back.
      case when d.period_start = a.period_start then -d.included else 0 end,
      a.sms_credits - sum(d.credits) over (partition by d.organisation_id order by d.id),
      a.period_start, d.message_id, core.now()
    from app.credit_ledger d
    join app.allowances a on a.organisation_id = d.organisation_id
    where d.message_id = any (ids)
      and d.kind = 'sms'
      and not exists (
        select from app.credit_ledger r where r.message_id = d.message_id and r.kind = 'refund')
    order by d.id
    returning organisation_id, credits, included
  )
  update app.allowances a
  set sms_credits = a.sms_credits + g.credits, sms_used = a.sms_used - g.included
  from (
    select organisation_id, sum(credits) as credits, sum(included) as included
    from given_back
    group by organisation_id
  ) g
  where a.organisation_id = g.organisation_id;
end
$$;

comment on function core.refund_sms is
  'Return the credits and the allowance of these SMS, which were never sent, each once. Skips messages that cost nothing: emails, test and sandbox messages.';
