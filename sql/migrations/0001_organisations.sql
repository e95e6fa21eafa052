-- Who may call: plans, organisations, their keys and how often they call.

create type app.mode as enum ('live', 'test');
create type app.organisation_state as enum ('active', 'paused', 'suspended');
create type app.scope as enum ('emails:send', 'sms:send', 'read', 'domains:write');

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
    constraint plans_domains_not_negative check (domains_included >= 0)
);
comment on table app.plans is 'What an organisation pays each month and what that includes.';

insert into app.plans (id, name, price_rand, emails_included, sms_included, domains_included)
values ('starter', 'Starter', 0, 10000, 100, 3);

create table app.organisations (
  id uuid primary key,
  name text not null
    constraint organisations_name_length check (length(name) between 1 and 200),
  owner_email text not null
    constraint organisations_owner_email_length check (length(owner_email) between 3 and 254),
  plan_id text not null references app.plans,
  state app.organisation_state not null default 'active',
  state_reason text
    constraint organisations_state_reason_length check (length(state_reason) <= 1000),
  state_since timestamptz not null default now(),
  complaints_since timestamptz not null default '-infinity',
  created_at timestamptz not null default now()
);
comment on table app.organisations is 'A customer: everything else belongs to one.';
comment on column app.organisations.complaints_since is
  'Complaints from before were looked at when a pause was lifted, and do not pause it again.';

-- Every accept locks its organisations' rows here, so they are small and hold nothing that is
-- read without the lock.
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
  messages_accepted bigint not null default 0
) with (fillfactor = 50);
comment on table app.allowances is
  'What an organisation has used of its plan in the current period, and the row that serialises its accepts.';
comment on column app.allowances.emails_used is 'Recipients accepted in the period; live only.';
comment on column app.allowances.sms_used is 'Segments that the plan includes, taken in the period; live only.';
comment on column app.allowances.sms_credits is
  'Prepaid segments left: the sum of app.credit_ledger, which every change of it writes to.';
comment on column app.allowances.messages_accepted is
  'Live messages ever put in the queue, but for scheduled ones; less app.counters.messages it is the backlog.';

-- Apart from app.allowances so that handing over never waits for an accept to commit.
create table app.counters (
  organisation_id uuid primary key references app.organisations,
  messages bigint not null default 0,
  emails_sent bigint not null default 0
) with (fillfactor = 50);
comment on table app.counters is
  'Live messages that have left the queue, whatever became of them.';
comment on column app.counters.emails_sent is
  'The emails among them that were sent and are no rehearsals: what complaints are compared with.';

create table app.api_keys (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  mode app.mode not null,
  scopes app.scope[] not null
    constraint api_keys_have_a_scope check (cardinality(scopes) > 0),
  prefix text not null
    constraint api_keys_prefix_length check (length(prefix) between 8 and 32),
  sha256 bytea not null unique
    constraint api_keys_sha256_length check (length(sha256) = 32),
  created_at timestamptz not null default now(),
  revoked_at timestamptz
);
create index api_keys_organisation_id on app.api_keys (organisation_id);
comment on table app.api_keys is
  'Keys by their SHA-256; a key is 244 random bits, so a slow hash would protect nothing.';

-- Unlogged: after a crash of the server the count of the second that was lost does not matter.
create unlogged table app.request_counts (
  organisation_id uuid primary key,
  second bigint not null,
  requests integer not null
) with (fillfactor = 20);
comment on table app.request_counts is
  'Requests of the current second, over all keys and all processes.';
