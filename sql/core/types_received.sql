-- The records that callers pass to functions of schema api as jsonb. `npm run types` generates the
-- TypeScript types of those arguments from them. The comment of each type begins with "Records of" (an
-- array) or "Record of" (one object) and names the arguments. A value may be null whose column comment begins
-- with "null"; a key may be left out whose column comment begins with "absent".

create type core.accept_call as (
  n integer,
  organisation_id uuid,
  mode app.mode,
  key text,
  fingerprint text,
  batch boolean
);
comment on type core.accept_call is
  'Records of api.accept_emails(calls), api.accept_sms(calls). A call of the API that sends messages.';
comment on column core.accept_call.n is 'Identifies the call in its items and in the results.';
comment on column core.accept_call.key is 'Its idempotency key, prefixed "caller:", or "request:" for one that the service made.';
comment on column core.accept_call.fingerprint is 'Identifies the request: method, path and body.';

create type core.accept_email as (
  call integer,
  index integer,
  error jsonb,
  class app.class,
  sender text,
  from_address text,
  from_domain text,
  "to" text[],
  cc text[],
  bcc text[],
  to_addresses text,
  recipients text[],
  reply_to text,
  subject text,
  html text,
  text text,
  template_id text,
  variables jsonb,
  headers jsonb,
  tags text[],
  is_sandbox boolean
);
comment on type core.accept_email is
  'Records of api.accept_emails(items). An email of a call, or why it is invalid: then it has call, index and error only.';
comment on column core.accept_email.call is 'The n of its call.';
comment on column core.accept_email.index is 'Its place in the call, from 0.';
comment on column core.accept_email.error is 'absent unless the service found it invalid: the error object then';
comment on column core.accept_email.to_addresses is 'The bare addresses of to, joined by ", ".';
comment on column core.accept_email.recipients is 'Bare addresses of to, cc and bcc, in lower case, each once.';
comment on column core.accept_email.reply_to is 'null when replies go to the sender';
comment on column core.accept_email.subject is 'null when the template has it';
comment on column core.accept_email.html is 'null when text only, or with a template';
comment on column core.accept_email.text is 'null when html only, or with a template';
comment on column core.accept_email.template_id is 'null without a template';
comment on column core.accept_email.variables is 'null without a template';
comment on column core.accept_email.headers is 'null when none';
comment on column core.accept_email.is_sandbox is 'absent unless the email goes to the sandbox beside a real provider';

create type core.accept_sms as (
  call integer,
  index integer,
  error jsonb,
  class app.class,
  sender_id text,
  recipient text,
  body text,
  segments integer,
  scheduled_at timestamptz,
  tags text[],
  is_sandbox boolean
);
comment on type core.accept_sms is
  'Records of api.accept_sms(items). An SMS of a call, or why it is invalid: then it has call, index and error only.';
comment on column core.accept_sms.call is 'The n of its call.';
comment on column core.accept_sms.index is 'Its place in the call, from 0.';
comment on column core.accept_sms.error is 'absent unless the service found it invalid: the error object then';
comment on column core.accept_sms.sender_id is 'null for the shared sender ID';
comment on column core.accept_sms.recipient is 'In E.164.';
comment on column core.accept_sms.scheduled_at is 'null for at once';
comment on column core.accept_sms.is_sandbox is 'absent unless the SMS goes to the sandbox beside a real provider';

create type core.refused_recipient as (
  recipient text,
  code text,
  text text
);
comment on type core.refused_recipient is 'A recipient that the provider refused permanently.';
comment on column core.refused_recipient.code is 'absent when the provider gave none';
comment on column core.refused_recipient.text is 'absent when the provider gave none';

create type core.taken_part as (
  part smallint,
  network_id text
);
comment on type core.taken_part is 'A part of an SMS that the network accepted.';
comment on column core.taken_part.part is 'From 1 on.';
comment on column core.taken_part.network_id is 'The id that the network gave it, in lower case.';

create type core.attempt_result as (
  id uuid,
  job bigint,
  outcome text,
  provider text,
  about text,
  code text,
  text text,
  retry_in_ms integer,
  ambiguous_since timestamptz,
  settled_recipients text[],
  refused core.refused_recipient[],
  parts core.taken_part[]
);
comment on type core.attempt_result is
  'Records of api.finish_messages(results). The result of an attempt to send a message.';
comment on column core.attempt_result.job is 'The graphile-worker job that made the attempt.';
comment on column core.attempt_result.outcome is 'sent, failed, deferred or ambiguous.';
comment on column core.attempt_result.about is 'absent when the provider was not asked; else whom a failure concerns: message, provider or connection';
comment on column core.attempt_result.code is 'absent when the provider gave none';
comment on column core.attempt_result.text is 'absent when the provider gave none';
comment on column core.attempt_result.retry_in_ms is 'absent unless deferred and the provider says when to retry';
comment on column core.attempt_result.ambiguous_since is 'absent unless this attempt only asked about one that began then';
comment on column core.attempt_result.settled_recipients is 'absent unless it is marketing to several: recipients whose copies are settled';
comment on column core.attempt_result.refused is 'absent unless recipients were refused permanently';
comment on column core.attempt_result.parts is 'absent unless it is an SMS: the parts that the network accepted, whatever the outcome';

create type core.notice_result as (
  id uuid,
  outcome text,
  code text,
  text text,
  ambiguous_since timestamptz
);
comment on type core.notice_result is 'Record of api.finish_notice(result). The result of an attempt to send a notice.';
comment on column core.notice_result.outcome is 'sent, failed, deferred or ambiguous.';
comment on column core.notice_result.code is 'absent when the provider gave none';
comment on column core.notice_result.text is 'absent when the provider gave none';
comment on column core.notice_result.ambiguous_since is 'absent unless this attempt only asked about one that began then';

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

create type core.delivery_result as (
  endpoint_id uuid,
  event_id uuid,
  attempt smallint,
  started_at timestamptz,
  duration_ms integer,
  status smallint,
  error text,
  response text
);
comment on type core.delivery_result is
  'Records of api.finish_deliveries(results). The result of an attempt to deliver an event.';
comment on column core.delivery_result.status is 'null when there was no response; else the HTTP status';
comment on column core.delivery_result.error is 'null when it succeeded; else why it failed';
comment on column core.delivery_result.response is 'null when there was no response; else the first characters of its body';

create type core.sandbox_item as (
  id uuid,
  copy smallint,
  kind text,
  reports jsonb,
  due_in_ms integer
);
comment on type core.sandbox_item is
  'Records of api.sandbox_take(messages). A message that the sandbox accepts, with its columns as in app.sandbox_messages.';
comment on column core.sandbox_item.reports is 'As the function that records them takes them, without their time.';

create type core.sandbox_copy as (
  id uuid,
  copy smallint
);
comment on type core.sandbox_copy is
  'Records of api.sandbox_knows(messages). Names a message or a copy of it, as in app.sandbox_messages.';

create type core.scheduled_task as (
  name text,
  schedule text
);
comment on type core.scheduled_task is
  'Records of api.set_scheduled_tasks(tasks). A scheduled task and its cron expression, in UTC.';

create type core.dkim_key as (
  selector text,
  state app.dkim_state,
  value text,
  private_key text
);
comment on type core.dkim_key is 'Record of api.finish_rotation(key). A DKIM key of a domain.';
comment on column core.dkim_key.value is 'The TXT value to publish.';
comment on column core.dkim_key.private_key is 'null when the provider keeps it; else sealed with SECRET_KEY';

create type core.identity as (
  provider text,
  dkim_zone text,
  keys core.dkim_key[]
);
comment on type core.identity is
  'Record of api.finish_check(identity), api.finish_domain(identity), api.store_signing_key(identity). What the provider made for a domain.';
