-- Receipts: complaints, tokens of callbacks, polls, and receipts that were ignored. Those of SMS are with SMS.

create table app.complaints (
  organisation_id uuid not null,
  message_id uuid not null,
  recipient text not null,
  received_at timestamptz not null,
  emails_sent bigint not null,
  primary key (organisation_id, message_id, recipient)
);
comment on table app.complaints is
  'Complaints about live emails in the last days, without sandbox messages: their rate can pause an organisation.';
comment on column app.complaints.emails_sent is 'The value of app.counters.emails_sent at that time.';

create table app.callback_tokens (
  token text primary key
    constraint callback_tokens_length check (length(token) between 1 and 200),
  provider_event_id text,
  signed_at timestamptz not null
);
create index callback_tokens_signed_at on app.callback_tokens (signed_at);
comment on table app.callback_tokens is
  'Tokens of signed callbacks, kept for as long as their signatures are accepted. A token signs one event only.';

create table app.receipt_polls (
  age interval primary key,
  polled_until timestamptz not null
);
comment on table app.receipt_polls is
  'How far the search for messages without a receipt has come, for each age at which messages are searched.';

create table app.stray_receipts (
  day date not null,
  provider text not null
    constraint stray_receipts_provider_length check (length(provider) between 1 and 100),
  receipts bigint not null,
  last_message_id uuid not null,
  last_at timestamptz not null,
  primary key (day, provider)
);
comment on table app.stray_receipts is
  'How many receipts were ignored in each UTC day because their message was not sent to the recipient they name. The recipients are not kept.';
