-- What has to be known of an organisation's account after a period has ended.

create table app.closed_periods (
  organisation_id uuid not null references app.organisations,
  period_start timestamptz not null,
  period_end timestamptz not null,
  plan_id text not null,
  plan_name text not null,
  price_rand integer not null,
  emails_included integer not null,
  emails_used integer not null,
  sms_included integer not null,
  sms_used integer not null,
  sms_credits integer not null,
  primary key (organisation_id, period_start)
);
comment on table app.closed_periods is
  'Billing periods that have ended, as they ended: the plan in force at their end with its price then, what was used, and the credits that were left. Rows are never changed.';

create table app.plan_changes (
  organisation_id uuid not null references app.organisations,
  id bigint generated always as identity,
  changed_at timestamptz not null,
  from_plan text not null,
  to_plan text not null,
  primary key (organisation_id, id)
);
comment on table app.plan_changes is 'When organisations were moved from one plan to another.';
