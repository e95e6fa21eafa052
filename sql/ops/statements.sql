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
  'All billing periods that have ended, for invoices. For a month''s: where period_end >= ''2026-03-01'' and period_end < ''2026-04-01''. ops.statement shows one of them with changes of plan and the movements of credits.';

comment on column ops.statements.organisation is 'The organisation''s id, org_….';
comment on column ops.statements.name is 'Its name today.';
comment on column ops.statements.period_start is 'When the period began.';
comment on column ops.statements.period_end is 'When it ended.';
comment on column ops.statements.plan is 'The id of the plan in force at the end.';
comment on column ops.statements.plan_name is 'What it was called then.';
comment on column ops.statements.price_rand is 'What it cost then, in rand.';
comment on column ops.statements.emails_included is 'Recipients of email that it included.';
comment on column ops.statements.emails_used is 'How many were used.';
comment on column ops.statements.sms_included is 'SMS segments that it included.';
comment on column ops.statements.sms_used is 'How many of those were used.';
comment on column ops.statements.credits_after is 'Prepaid SMS segments left at the end.';
