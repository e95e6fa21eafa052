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

comment on view ops.organisations is
  'Organisations: state, plan, usage, credits and waiting messages.';

comment on column ops.organisations.id is 'org_…. Functions of ops take it or the name.';
comment on column ops.organisations.name is 'What ops.rename_organisation called it last.';
comment on column ops.organisations.owner_email is 'Where mail to its owner goes.';
comment on column ops.organisations.plan is 'The id of its plan, see ops.plans.';
comment on column ops.organisations.state is 'active, paused (live sends are refused, what is queued waits) or suspended (everything is refused). One that is both shows suspended.';
comment on column ops.organisations.state_reason is 'Why it is paused or suspended; null while it is active.';
comment on column ops.organisations.state_since is 'Since when it is in that state.';
comment on column ops.organisations.emails_used is 'Recipients of email in the present period, with cc and bcc.';
comment on column ops.organisations.emails_included is 'How many its plan includes.';
comment on column ops.organisations.sms_used is 'SMS segments of the plan that were used in the present period.';
comment on column ops.organisations.sms_included is 'How many its plan includes.';
comment on column ops.organisations.sms_credits is 'Prepaid SMS segments that are left.';
comment on column ops.organisations.period_end is 'When the period ends and both start again.';
comment on column ops.organisations.messages_waiting is 'Live messages that were accepted and have not ended or been handed over.';
comment on column ops.organisations.created_at is 'When it was made, from which its periods count.';
comment on column ops.organisations.paused_at is 'When its pause began; null when it is not paused.';
comment on column ops.organisations.pause_reason is 'Why it is paused, whether or not it is suspended as well.';
comment on column ops.organisations.suspended_at is 'When its suspension began; null when it is not suspended.';
comment on column ops.organisations.suspension_reason is 'Why it is suspended.';
comment on column ops.organisations.test_messages_today is
  'Test messages, and sandbox messages beside a real provider, of this day in UTC; its plan allows test_messages_daily.';
comment on column ops.organisations.probed_at is
  'When it last wrote to more than 500 addresses in an hour that had bounced for other organisations; null when it never did.';
