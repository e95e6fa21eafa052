create view ops.organisations as
select
  core.encode_id('org', o.id) as id,
  o.name,
  o.owner_email,
  o.plan_id as plan,
  o.state,
  core.state_reason(o) as state_reason,
  core.state_since(o) as state_since,
  u.emails_used,
  p.emails_included,
  u.sms_used,
  p.sms_included,
  u.sms_credits,
  u.period_end,
  a.messages_accepted - d.messages_dequeued as messages_waiting,
  o.created_at,
  o.paused_at,
  o.pause_reason,
  o.suspended_at,
  o.suspension_reason,
  case when a.test_day = (core.now() at time zone 'UTC')::date then a.test_messages else 0 end as test_messages_today,
  b.exceeded_at as probed_at
from app.organisations o
join app.plans p on p.id = o.plan_id
join app.allowances a on a.organisation_id = o.id
cross join lateral core.current_usage(o.id) u
join app.counters d on d.organisation_id = o.id
left join app.named_bounces b on b.organisation_id = o.id;

comment on view ops.organisations is 'Organisations: state, plan, usage, credits and waiting messages.';

comment on column ops.organisations.id is 'The organisation''s ID, org_…. Functions of ops accept it or the name.';
comment on column ops.organisations.name is 'The name; ops.rename_organisation changes it.';
comment on column ops.organisations.owner_email is 'The owner''s address, which receives the notices.';
comment on column ops.organisations.plan is 'The ID of the plan, see ops.plans.';
comment on column ops.organisations.state is
  'active, paused (live sends are refused, queued messages wait) or suspended (all requests are refused). An organisation that is both shows suspended.';
comment on column ops.organisations.state_reason is 'Why the organisation is paused or suspended; null while it is active.';
comment on column ops.organisations.state_since is 'Since when the organisation has this state.';
comment on column ops.organisations.emails_used is 'Email recipients, including cc and bcc, in the current billing period.';
comment on column ops.organisations.emails_included is 'Email recipients that the plan includes in a period.';
comment on column ops.organisations.sms_used is 'SMS segments of the plan used in the current billing period.';
comment on column ops.organisations.sms_included is 'SMS segments that the plan includes in a period.';
comment on column ops.organisations.sms_credits is 'Prepaid SMS segments left.';
comment on column ops.organisations.period_end is 'When the current billing period ends.';
comment on column ops.organisations.messages_waiting is 'Number of accepted live messages that are not yet sent.';
comment on column ops.organisations.created_at is
  'When the organisation was created; its billing periods start on this day of the month.';
comment on column ops.organisations.paused_at is 'When the pause began; null while not paused.';
comment on column ops.organisations.pause_reason is 'Why the organisation is paused, also while it is suspended.';
comment on column ops.organisations.suspended_at is 'When the suspension began; null while not suspended.';
comment on column ops.organisations.suspension_reason is 'Why the organisation is suspended.';
comment on column ops.organisations.test_messages_today is
  'Test and sandbox messages of the current UTC day. The plan''s limit is test_messages_daily.';
comment on column ops.organisations.probed_at is
  'When the organisation last wrote, within an hour, to more than 500 addresses that had bounced for other organisations; null if it never did.';
