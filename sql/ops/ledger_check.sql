create view ops.ledger_check as
with entry as (
  select l.*, sum(l.credits) over (partition by l.organisation_id order by l.id) as running_sum
  from app.credit_ledger l
),
ledger as (
  select e.organisation_id,
    sum(e.credits) as credits,
    -sum(e.included) filter (where e.period_start = a.period_start) as included_used,
    count(*) filter (where e.balance <> e.running_sum) as wrong_balances,
    count(*) filter (where e.kind = 'refund' and not exists (
      select from app.credit_ledger d
      where d.message_id = e.message_id and d.kind = 'sms' and d.organisation_id = e.organisation_id
        and e.credits = -d.credits and e.included in (0, -d.included)
    )) as wrong_refunds
  from entry e
  join app.allowances a on a.organisation_id = e.organisation_id
  group by e.organisation_id
),
account as (
  select a.organisation_id, a.sms_credits, coalesce(l.credits, 0) as ledger_credits,
    a.sms_used, coalesce(l.included_used, 0) as ledger_sms_used,
    coalesce(l.wrong_balances, 0) as wrong_balances, coalesce(l.wrong_refunds, 0) as wrong_refunds
  from app.allowances a
  left join ledger l on l.organisation_id = a.organisation_id
)
select core.encode_id('org', c.organisation_id) as organisation,
  c.sms_credits = c.ledger_credits and c.sms_used = c.ledger_sms_used
    and c.wrong_balances = 0 and c.wrong_refunds = 0 as is_balanced,
  c.sms_credits, c.ledger_credits, c.sms_used, c.ledger_sms_used, c.wrong_balances, c.wrong_refunds
from account c
order by is_balanced, c.organisation_id;

comment on view ops.ledger_check is
  'Check that SMS credits and the ledger agree, by organisation. Wrong ones come first: the credits are the sum of the ledger, the use of the plan is what the ledger says of the period, each balance is the sum up to there, each refund returns what was paid. Reads the whole ledger: select count(*) from ops.ledger_check where not is_balanced returns 0.';

comment on column ops.ledger_check.organisation is 'The organisation''s id, org_….';
comment on column ops.ledger_check.is_balanced is 'Whether all that follows agrees.';
comment on column ops.ledger_check.sms_credits is 'The balance of prepaid segments, as sends take from it.';
comment on column ops.ledger_check.ledger_credits is 'The sum of the ledger, which has to be the same.';
comment on column ops.ledger_check.sms_used is 'Segments of the plan that were used in the present period.';
comment on column ops.ledger_check.ledger_sms_used is 'The same by the ledger.';
comment on column ops.ledger_check.wrong_balances is 'Rows of the ledger whose balance is not the sum up to there.';
comment on column ops.ledger_check.wrong_refunds is 'Refunds of something that was not paid so.';
