-- What the running processes tell each other.

create table app.processes (
  pool_id text primary key
    constraint processes_pool_id_length check (length(pool_id) between 8 and 100),
  roles text[] not null,
  host text not null,
  pid integer not null,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now()
);
comment on table app.processes is
  'Running processes by the worker pool whose name their jobs carry; each holds an advisory lock on it.';

create table app.provider_health (
  provider text primary key,
  failing_since timestamptz not null,
  last_error text not null
);
comment on table app.provider_health is
  'A row for each provider that refuses or cannot be reached, since its last success.';

create table app.sandbox_messages (
  message_id uuid not null,
  copy smallint not null,
  kind text not null
    constraint sandbox_messages_kind check (kind in ('email', 'sms', 'reply')),
  attempts integer not null default 1,
  reports jsonb not null,
  taken_at timestamptz not null,
  due_at timestamptz,
  primary key (message_id, copy)
);
create index sandbox_messages_due_at on app.sandbox_messages (due_at) where due_at is not null;
comment on table app.sandbox_messages is
  'What the sandbox network was handed: its memory, and its reports that are still to come.';
comment on column app.sandbox_messages.copy is
  'Of an email to several, which copy, or 0 for one that came whole; of an SMS, which part, or 0 for the reply to it.';
comment on column app.sandbox_messages.kind is 'What it reports: receipts of an email or of a part of an SMS, or the reply to one.';
comment on column app.sandbox_messages.due_at is 'When its reports come; null once they came.';

create table app.callback_tokens (
  token text primary key
    constraint callback_tokens_length check (length(token) between 1 and 200),
  provider_event_id text,
  signed_at timestamptz not null
);
create index callback_tokens_signed_at on app.callback_tokens (signed_at);
comment on table app.callback_tokens is
  'What made the signatures of callbacks unique, for as long as those are accepted: a token signs one event only.';

create table app.receipt_polls (
  age interval primary key,
  polled_until timestamptz not null
);
comment on table app.receipt_polls is
  'Up to where messages of some age were looked through for those without a receipt.';

create type app.notice_kind as enum ('org_paused', 'domain_failed', 'domain_not_found');

create table app.notices (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  kind app.notice_kind not null,
  detail jsonb not null,
  created_at timestamptz not null,
  attempts smallint not null default 0,
  attempt_started_at timestamptz,
  sent_at timestamptz,
  failed_at timestamptz,
  error_message text,
  constraint notices_end_once check (sent_at is null or failed_at is null)
);
create index notices_organisation_id on app.notices (organisation_id);
comment on table app.notices is 'Mail from the service itself to the owners of organisations, each sent once.';
comment on column app.notices.attempt_started_at is
  'Set before the provider is called, cleared when its answer is known, as in app.messages.';
comment on column app.notices.error_message is 'What the provider said to the last attempt that failed.';
