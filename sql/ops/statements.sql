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
  'Statements of all closed billing periods, for invoices. For one month: where period_end >= ''2026-03-01'' and period_end < ''2026-04-01''. ops.statement adds plan changes and movements of credits.';

comment on column ops.statements.organisation is 'The organisation''s ID, org_….';
comment on column ops.statements.name is 'The organisation''s current name.';
comment on column ops.statements.period_start is 'When the period began.';
comment on column ops.statements.period_end is 'When the period ended.';
comment on column ops.statements.plan is 'The ID of the plan in force at the end.';
comment on column ops.statements.plan_name is 'The name of the plan at that time.';
comment on column ops.statements.price_rand is 'The price of the plan at that time, in rand.';
comment on column ops.statements.emails_included is 'Email recipients that the plan included.';
comment on column ops.statements.emails_used is 'Email recipients used.';
comment on column ops.statements.sms_included is 'SMS segments that the plan included.';
comment on column ops.statements.sms_used is 'SMS segments of the plan used.';
comment on column ops.statements.credits_after is 'Prepaid SMS segments left at the end.';
