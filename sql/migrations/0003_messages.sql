-- Messages, and all that hangs on one. Partitioned by range on the UUIDv7 of the message, so that
-- an id alone finds its partition and retention is dropping one. core.make_partitions() makes them.
-- The hot tables have no foreign keys: a check for each row would lock the organisation's row
-- against its own accepts, and the functions that write here hold the parents' locks anyway.

create type app.channel as enum ('email', 'sms');
create type app.message_status as enum (
  'scheduled', 'queued', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'expired', 'rejected'
);
create type app.event_type as enum (
  'queued', 'scheduled', 'sent', 'deferred', 'delivered', 'bounced', 'complained', 'failed',
  'expired', 'rejected', 'opted_out'
);

create table app.messages (
  status app.message_status not null,
  id uuid not null primary key,
  organisation_id uuid not null,
  channel app.channel not null,
  mode app.mode not null,
  class app.class not null,
  from_address text not null,
  to_address text not null,
  subject text,
  tags text[] not null,
  recipients smallint not null
    constraint messages_reach_someone check (recipients > 0),
  attempts smallint not null default 0,
  attempt_started_at timestamptz,
  provider text,
  created_at timestamptz not null,
  sent_at timestamptz,
  delivered_at timestamptz,
  error_code text,
  error_message text,
  is_sandbox boolean not null default false,
  segments smallint,
  credits smallint,
  scheduled_at timestamptz,
  constraint messages_email_has_subject check (channel <> 'email' or subject is not null),
  constraint messages_sms_has_price check (channel <> 'sms' or segments > 0 and credits >= 0)
) partition by range (id);
create index messages_organisation_id on app.messages (organisation_id, id);
create index messages_sms_to on app.messages (to_address, id) where channel = 'sms';
comment on table app.messages is
  'One row for each message accepted. No index on status, so that its changes stay heap-only.';
comment on column app.messages.recipients is 'Distinct addresses over to, cc and bcc.';
comment on column app.messages.attempts is 'Hand-overs begun.';
comment on column app.messages.attempt_started_at is
  'Set before the provider is called, cleared when its answer is known: still set, the outcome is ambiguous.';
comment on column app.messages.provider is 'Who took the last hand-over.';
comment on column app.messages.is_sandbox is
  'Goes to the sandbox beside a real provider, and counts neither for allowance nor for rates.';

create table app.bodies (
  message_id uuid not null primary key,
  sender text not null,
  "to" text[] not null,
  cc text[] not null,
  bcc text[] not null,
  recipients text[] not null,
  reply_to text,
  html text,
  text text,
  headers jsonb,
  settled_recipients text[]
) partition by range (message_id);
comment on column app.messages.segments is 'Of an SMS: the parts that the network carries it in.';
comment on column app.messages.credits is
  'Of an SMS: the segments taken from prepaid credits when it was accepted; the others came out of the plan.';
comment on column app.messages.scheduled_at is 'Of an SMS: when it was to be sent; null for at once.';

comment on table app.bodies is
  'What is handed to the provider, apart from what app.messages knows; of an SMS the sender ID, the number as its one recipient, and the text.';
comment on column app.bodies.recipients is 'Bare addresses of to, cc and bcc, in lower case, each once.';
comment on column app.bodies.settled_recipients is
  'Of marketing to several: the recipients whose copies are settled; null while that is none or all.';

create sequence app.events_id_seq;
create table app.events (
  message_id uuid not null,
  id bigint not null default nextval('app.events_id_seq'),
  type app.event_type not null,
  occurred_at timestamptz not null,
  provider_event_id text,
  detail jsonb not null default '{}',
  primary key (message_id, id),
  constraint events_stored_once unique (message_id, provider_event_id)
) partition by range (message_id);
comment on table app.events is
  'What happened to a message after it was queued and handed over; those two are on the message itself.';

create table app.complaints (
  organisation_id uuid not null,
  message_id uuid not null,
  recipient text not null,
  received_at timestamptz not null,
  emails_sent bigint not null,
  primary key (organisation_id, message_id, recipient)
);
comment on table app.complaints is
  'Complaints of the last days, for the rate that pauses an organisation (interface 6.4); live only, without rehearsals.';
comment on column app.complaints.emails_sent is 'What app.counters had counted by then.';

create table app.due_messages (
  message_id uuid primary key,
  organisation_id uuid not null,
  due_at timestamptz not null,
  priority smallint not null,
  late_at timestamptz
);
create index due_messages_due_at on app.due_messages (due_at);
create index due_messages_held on app.due_messages (organisation_id) where due_at = 'infinity';
comment on table app.due_messages is
  'Messages that wait for a time, or without one (infinity) until their organisation may send again; kept out of the job table.';
comment on column app.due_messages.late_at is
  'Of a scheduled SMS: when it is too late to send it, and it is to be rejected though its organisation is still paused.';

create table app.idempotency_keys (
  organisation_id uuid not null,
  mode app.mode not null,
  key text not null
    constraint idempotency_keys_length check (length(key) between 1 and 300),
  created_at timestamptz not null,
  fingerprint text not null,
  status smallint not null,
  body text not null,
  primary key (organisation_id, mode, key, created_at)
) partition by range (created_at);
comment on table app.idempotency_keys is
  'What was answered, for 24 hours (interface 4.12). Unique by the lock on the organisation, not by an index, so that a day can be dropped whole.';
