create view ops.organisations as
select
  core.encode_id('org', o.id) as id,
  o.name,
  o.owner_email,
  o.plan_id as plan,
  o.state,
  o.state_reason,
  o.state_since,
  u.emails_used,
  p.emails_included,
  u.sms_used,
  p.sms_included,
  u.sms_credits,
  u.period_end,
  a.messages_accepted - d.messages as messages_waiting,
  o.created_at
from app.organisations o
join app.plans p on p.id = o.plan_id
join app.allowances a on a.organisation_id = o.id
cross join lateral core.current_usage(o.id) u
join app.departures d on d.organisation_id = o.id;

comment on view ops.organisations is 'Organisations with their state, what they used of their plan, the SMS credits they have left, and what they have waiting.';
