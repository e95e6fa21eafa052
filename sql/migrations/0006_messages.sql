-- Messages, their bodies and events, and those that wait without a job.
--
-- The hot tables are partitioned by range on the UUIDv7 of the message: an id alone finds its partition,
-- and retention drops whole partitions. api.make_partitions() creates them.
--
-- They have no foreign keys. A check for each row would lock the organisation's row against its own
-- accepts, and the functions that write here hold the locks of the parents anyway.

create table app.messages (
  id uuid not null primary key,
  organisation_id uuid not null,
  channel app.channel not null,
  mode app.mode not null,
  class app.class not null,
  status app.message_status not null,
  from_address text not null,
  to_address text not null,
  subject text,
  tags text[] not null,
  recipients smallint not null
    constraint messages_have_a_recipient check (recipients > 0),
  segments smallint,
  credits smallint,
  is_sandbox boolean not null default false,
  attempts smallint not null default 0,
  provider text,
  error_code app.error_code,
  error_message text,
  created_at timestamptz not null,
  scheduled_at timestamptz,
  attempt_started_at timestamptz,
  sent_at timestamptz,
  delivered_at timestamptz,
  constraint messages_email_has_subject check (channel <> 'email' or subject is not null),
  constraint messages_sms_has_price check (channel <> 'sms' or segments > 0 and credits >= 0)
) partition by range (id);
create index messages_organisation_id on app.messages (organisation_id, id);
create index messages_sms_to on app.messages (to_address, id) where channel = 'sms';
comment on table app.messages is
  'One row for each accepted message. status has no index, so that changes of status are heap-only updates.';
comment on column app.messages.recipients is 'Distinct addresses in to, cc and bcc.';
comment on column app.messages.segments is 'Of an SMS: the parts in which the network carries it. null for an email.';
comment on column app.messages.credits is
  'Of an SMS: the segments taken from prepaid credits when it was accepted; the plan covered the others. null for an email.';
comment on column app.messages.is_sandbox is
  'Goes to the sandbox beside a real provider. It counts neither for the allowance nor for rates.';
comment on column app.messages.attempts is 'Attempts begun.';
comment on column app.messages.provider is 'The provider that accepted the last attempt; null before the first.';
comment on column app.messages.error_code is 'Why it was not delivered; null while nothing failed.';
comment on column app.messages.scheduled_at is 'Of an SMS: when it is to be sent; null for at once.';
comment on column app.messages.attempt_started_at is
  'When the attempt in progress began: set before the provider is called, cleared when its response is known. While it is set, the outcome is ambiguous.';

create table app.bodies (
  message_id uuid not null primary key,
  sender text not null,
  "to" text[] not null,
  cc text[] not null,
  bcc text[] not null,
  recipients text[] not null,
  settled_recipients text[],
  reply_to text,
  headers jsonb,
  html text,
  text text
) partition by range (message_id);
comment on table app.bodies is
  'What the provider gets beside the columns of app.messages. Of an SMS: the sender ID, the number as its one recipient, and the text.';
comment on column app.bodies.recipients is 'Bare addresses of to, cc and bcc, in lower case, each once.';
comment on column app.bodies.settled_recipients is
  'Of marketing to several recipients: those whose copies are settled; null while none or all are.';

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
  'What happened to a message after it was queued and sent; app.messages itself holds those two.';
comment on column app.events.provider_event_id is
  'The provider''s id of the receipt, by which a repeated one is recognised; null for an event of the service.';

create table app.due_messages (
  message_id uuid primary key,
  organisation_id uuid not null,
  priority smallint not null,
  due_at timestamptz,
  late_at timestamptz
);
create index due_messages_due_at on app.due_messages (due_at);
create index due_messages_held on app.due_messages (organisation_id) where due_at is null;
comment on table app.due_messages is
  'Messages without a job: they are scheduled, deferred, or held until their organisation may send again. This keeps the job table small.';
comment on column app.due_messages.due_at is 'When it gets a job; null while it is held.';
comment on column app.due_messages.late_at is
  'Of a scheduled SMS: when it is too late to send it. It is rejected then, though its organisation is still paused.';
