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
  'Check that each organisation''s SMS credits agree with the ledger. Organisations that do not agree come first. Four things are compared: the credits with the sum of the ledger, the plan''s usage with the ledger of the period, each balance with the sum up to its row, and each refund with its payment. The view reads the whole ledger.';

comment on column ops.ledger_check.organisation is 'The organisation''s ID, org_….';
comment on column ops.ledger_check.is_balanced is 'Whether all of the following agree.';
comment on column ops.ledger_check.sms_credits is 'The balance of prepaid segments that sends are charged to.';
comment on column ops.ledger_check.ledger_credits is 'The sum of the ledger; must equal sms_credits.';
comment on column ops.ledger_check.sms_used is 'Segments of the plan used in the current period.';
comment on column ops.ledger_check.ledger_sms_used is 'The same by the ledger; must equal sms_used.';
comment on column ops.ledger_check.wrong_balances is 'Number of ledger rows whose balance is not the sum up to that row.';
comment on column ops.ledger_check.wrong_refunds is 'Number of refunds that do not match a payment.';
