create view ops.organisations as
select
  core.encode_id('org', o.id) as id,
  o.name,
  o.owner_email,
  o.plan_id as plan,
  o.state,
  o.state_reason,
  o.state_since,
  -- The next accept begins the new period.
  case when a.period_end > core.now() then a.emails_used else 0 end as emails_used,
  p.emails_included,
  case when a.period_end > core.now() then a.sms_used else 0 end as sms_used,
  p.sms_included,
  a.sms_credits,
  a.period_end,
  a.messages_accepted - d.messages as messages_waiting,
  o.created_at
from app.organisations o
join app.plans p on p.id = o.plan_id
join app.allowances a on a.organisation_id = o.id
join app.departures d on d.organisation_id = o.id;

comment on view ops.organisations is 'Organisations with their state, what they used of their plan, the SMS credits they have left, and what they have waiting.';
