-- What providers and phones report, and the statuses that follow.

create type core.receipt as (
  message_id uuid,
  provider_event_id text,
  type app.event_type,
  occurred_at timestamptz,
  recipient text,
  part smallint,
  word text,
  code text,
  text text,
  is_hard boolean
);
comment on type core.receipt is 'Records of api.finish_poll(receipts). What a provider reports of a message.';
comment on column core.receipt.type is 'sent means that the provider has the message.';
comment on column core.receipt.recipient is 'absent when the report is about the whole message; else a bare address in lower case';
comment on column core.receipt.part is 'absent unless it is about a part of an SMS';
comment on column core.receipt.word is 'absent unless it is an opt-out: the keyword';
comment on column core.receipt.code is 'absent when the provider gave none';
comment on column core.receipt.text is 'absent when the provider gave none';
comment on column core.receipt.is_hard is 'absent unless it is a bounce: whether the mailbox does not exist';

create type core.callback as (
  n integer,
  token text,
  signed_at bigint,
  receipt core.receipt
);
comment on type core.callback is
  'Records of api.receive_callbacks(callbacks). A callback of the email provider whose signature is valid.';
comment on column core.callback.token is 'Makes its signature unique.';
comment on column core.callback.signed_at is 'Unix seconds.';
comment on column core.callback.receipt is 'null when the event is ignored';

create type core.sms_receipt as (
  provider text,
  network_ids text[],
  phone text,
  type text,
  occurred_at timestamptz,
  code text,
  text text
);
comment on type core.sms_receipt is
  'Records of api.record_sms_receipts(receipts). What a network reports of a part of an SMS.';
comment on column core.sms_receipt.network_ids is 'The spellings that the id may have, the likeliest first; at most 8.';
comment on column core.sms_receipt.phone is 'absent when the network does not say; else the recipient in E.164';
comment on column core.sms_receipt.type is 'delivered, deferred, failed or expired.';
comment on column core.sms_receipt.code is 'absent when the network gave none';
comment on column core.sms_receipt.text is 'absent when the network gave none';

create type core.keyword_sms as (
  provider text,
  "from" text,
  "to" text,
  keyword text,
  word text,
  received_at timestamptz
);
comment on type core.keyword_sms is
  'Records of api.record_keywords(messages). A message from a phone that consists of a keyword.';
comment on column core.keyword_sms."from" is 'The phone, in E.164.';
comment on column core.keyword_sms."to" is 'The sender ID that received it.';
comment on column core.keyword_sms.keyword is 'stop or start.';
comment on column core.keyword_sms.word is 'The text that was sent.';

create type core.stored_receipt as (
  message_id uuid,
  type app.event_type,
  detail jsonb
);
comment on type core.stored_receipt is 'A receipt that had not come before, as it is kept in app.events.';

create type core.receipt_verdict as (
  message_id uuid,
  organisation_id uuid,
  old_status app.message_status,
  old_sent_at timestamptz,
  old_error_code text,
  status app.message_status,
  delivered_at timestamptz,
  error_code text,
  error_message text
);
comment on type core.receipt_verdict is 'The status of a message, before its receipts and as they decide it.';

create type core.hard_bounce as (
  email text,
  note text,
  message_id uuid
);
comment on type core.hard_bounce is 'An address, in lower case, to suppress for every organisation, as core.add_hard_bounces takes it.';
comment on column core.hard_bounce.message_id is 'The message that bounced; null when an operator adds the address.';
