create view ops.statements as
select
  core.encode_id('org', c.organisation_id) as organisation,
  o.name,
  c.period_start,
  c.period_end,
  c.plan_id as plan,
  c.plan_name,
  c.price_rand,
  c.emails_included,
  c.emails_used,
  c.sms_included,
  c.sms_used,
  c.sms_credits as credits_after
from app.closed_periods c
join app.organisations o on o.id = c.organisation_id;

comment on view ops.statements is
  'Every billing period that has ended, of all organisations, for a month''s invoices: where period_end >= ''2026-03-01'' and period_end < ''2026-04-01''. ops.statement has one of them with changes of plan and the movements of credits.';
