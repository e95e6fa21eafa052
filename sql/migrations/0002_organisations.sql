-- Plans, organisations, and what they use.

create table app.plans (
  id text primary key
    constraint plans_id_is_a_slug check (id ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  name text not null
    constraint plans_name_length check (length(name) between 1 and 200),
  price_rand integer not null
    constraint plans_price_not_negative check (price_rand >= 0),
  emails_included integer not null
    constraint plans_emails_not_negative check (emails_included >= 0),
  sms_included integer not null
    constraint plans_sms_not_negative check (sms_included >= 0),
  domains_included integer not null
    constraint plans_domains_not_negative check (domains_included >= 0),
  test_messages_daily integer not null default 10000
    constraint plans_test_messages_not_negative check (test_messages_daily >= 0)
);
comment on table app.plans is 'What an organisation pays each month and what that includes.';
comment on column app.plans.sms_included is 'Segments, not messages.';
comment on column app.plans.test_messages_daily is
  'How many test and sandbox messages an organisation may send in a UTC day.';

insert into app.plans (id, name, price_rand, emails_included, sms_included, domains_included)
values ('starter', 'Starter', 0, 10000, 100, 3);

create type app.organisation_state as enum ('active', 'paused', 'suspended');

create table app.organisations (
  id uuid primary key,
  name text not null
    constraint organisations_name_length check (length(name) between 1 and 200),
  owner_email text not null
    constraint organisations_owner_email_length check (length(owner_email) between 3 and 254),
  plan_id text not null references app.plans,
  state app.organisation_state not null generated always as (
    case
      when suspended_at is not null then 'suspended'::app.organisation_state
      when paused_at is not null then 'paused'
      else 'active'
    end) stored,
  paused_at timestamptz,
  pause_reason text
    constraint organisations_pause_reason_length check (length(pause_reason) <= 1000),
  suspended_at timestamptz,
  suspension_reason text
    constraint organisations_suspension_reason_length check (length(suspension_reason) <= 1000),
  activated_at timestamptz not null,
  complaints_since timestamptz,
  created_at timestamptz not null default now(),
  constraint organisations_pause_has_reason check ((paused_at is null) = (pause_reason is null)),
  constraint organisations_suspension_has_reason check ((suspended_at is null) = (suspension_reason is null))
);
comment on table app.organisations is 'A customer. Every other record belongs to one.';
comment on column app.organisations.state is
  'Follows from paused_at and suspended_at. An organisation may have both; then it is suspended.';
comment on column app.organisations.activated_at is
  'When it was created, or when its last pause or suspension ended.';
comment on column app.organisations.complaints_since is
  'Only complaints received after this time can pause the organisation: the end of its last pause; null before the first.';

-- Every accept locks its organisations' rows here. So they are small, and hold nothing that is read
-- without the lock.
create table app.allowances (
  organisation_id uuid primary key references app.organisations,
  period_start timestamptz not null,
  period_end timestamptz not null
    constraint allowances_period_not_empty check (period_end > period_start),
  emails_used integer not null default 0
    constraint allowances_emails_used_not_negative check (emails_used >= 0),
  sms_used integer not null default 0
    constraint allowances_sms_used_not_negative check (sms_used >= 0),
  sms_credits integer not null default 0
    constraint allowances_sms_credits_not_negative check (sms_credits >= 0),
  messages_accepted bigint not null default 0,
  test_day date,
  test_messages integer not null default 0
    constraint allowances_test_messages_not_negative check (test_messages >= 0)
) with (fillfactor = 50);
comment on table app.allowances is
  'What an organisation has used of its plan in the current period. The row serialises its accepts.';
comment on column app.allowances.emails_used is 'Recipients of live emails accepted in the period.';
comment on column app.allowances.sms_used is 'Segments of live SMS taken from the plan in the period.';
comment on column app.allowances.sms_credits is
  'Prepaid segments left: the sum of app.credit_ledger, which records every change.';
comment on column app.allowances.messages_accepted is
  'Live messages ever queued, without scheduled ones. Less app.counters.messages_dequeued it is the backlog.';
comment on column app.allowances.test_day is
  'The UTC day of the last accepted test or sandbox message; null before the first.';
comment on column app.allowances.test_messages is
  'Test messages, and sandbox messages beside a real provider, accepted on test_day.';

-- Apart from app.allowances so that attempts never wait for an accept to commit.
create table app.counters (
  organisation_id uuid primary key references app.organisations,
  messages_dequeued bigint not null default 0,
  emails_sent bigint not null default 0
) with (fillfactor = 50);
comment on table app.counters is 'How many live messages of an organisation left the queue.';
comment on column app.counters.messages_dequeued is 'Live messages that left the queue, with any outcome.';
comment on column app.counters.emails_sent is
  'Emails among them that were sent, without sandbox messages: complaints are compared with this.';

create table app.named_bounces (
  organisation_id uuid primary key references app.organisations,
  hour timestamptz not null,
  addresses bigint not null
    constraint named_bounces_addresses_positive check (addresses > 0),
  exceeded_at timestamptz
) with (fillfactor = 50);
comment on table app.named_bounces is
  'How many addresses an organisation named in its last hour with such a request that had bounced for other organisations.';
comment on column app.named_bounces.exceeded_at is 'When it last exceeded the limit of an hour; null if never.';

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
  'Billing periods that have ended: the plan and its price at their end, what was used, and the credits left. Rows never change.';

create table app.plan_changes (
  organisation_id uuid not null references app.organisations,
  id bigint generated always as identity,
  from_plan text not null,
  to_plan text not null,
  changed_at timestamptz not null,
  primary key (organisation_id, id)
);
comment on table app.plan_changes is 'When organisations were moved from one plan to another.';
