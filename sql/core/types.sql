create type core.template_text as (
  literals text[],
  names text[],
  bytes integer
);
comment on type core.template_text is
  'A parsed subject or body of a template: the literals around its placeholders, the names of the placeholders, and the bytes of the literals together.';

create type core.parsed_template as (
  subject text,
  html core.template_text,
  text core.template_text
);
comment on type core.parsed_template is 'A template from which emails are rendered.';

create type core.sized_email as (
  template integer,
  subject text,
  bytes integer,
  fields jsonb
);
comment on type core.sized_email is 'A templated email before its bodies are rendered.';
comment on column core.sized_email.template is 'Its place in the array of parsed templates.';
comment on column core.sized_email.bytes is 'Size of the bodies once rendered.';
comment on column core.sized_email.fields is 'Problems of the request; null when there are none.';

create type core.ending as (
  message_id uuid,
  status app.message_status,
  code text,
  reason text
);
comment on type core.ending is
  'The end of a message that is not attempted again: rejected or failed, with an error code and its text.';

create type core.checked_call as (
  n integer,
  organisation_id uuid,
  mode app.mode,
  key text,
  fingerprint text,
  batch boolean,
  verdict text,
  stored_status smallint,
  stored_body text,
  is_paused boolean,
  backlog bigint,
  emails_included integer,
  email_allowance integer,
  sms_allowance integer,
  sms_credits integer,
  period_start timestamptz,
  period_end timestamptz,
  test_limit integer,
  test_allowance integer
);
comment on type core.checked_call is 'A call with the state of its organisation, before its items are judged.';
comment on column core.checked_call.verdict is
  'Null when the items are to be judged; else replay, or the code that refuses the call as a whole.';
comment on column core.checked_call.email_allowance is 'Emails of the plan that are left.';
comment on column core.checked_call.test_allowance is 'Test and sandbox messages that are left today.';

create type core.judged_email as (
  place integer,
  n integer,
  index integer,
  id uuid,
  organisation_id uuid,
  mode app.mode,
  class app.class,
  recipients integer,
  is_free boolean,
  backlog bigint,
  foreign_addresses integer,
  is_beyond boolean,
  refusal text,
  message text,
  retry_after integer,
  fields jsonb,
  error jsonb
);
comment on type core.judged_email is 'An email of a call with the decision about it; refusal is null when it is accepted.';
comment on column core.judged_email.place is 'From 1, among the items of all calls.';
comment on column core.judged_email.is_free is 'Whether it counts as a test or sandbox message and not against the plan.';
comment on column core.judged_email.foreign_addresses is
  'How many of its recipients are suppressed only because they bounced for another organisation.';
comment on column core.judged_email.is_beyond is
  'Whether the organisation named more such addresses this hour than refusals may confirm.';

create type core.judged_sms as (
  place integer,
  n integer,
  index integer,
  id uuid,
  organisation_id uuid,
  mode app.mode,
  class app.class,
  sender text,
  status app.message_status,
  scheduled_at timestamptz,
  is_far boolean,
  is_free boolean,
  price integer,
  credits integer,
  credits_left integer,
  period_start timestamptz,
  backlog bigint,
  obstacle text,
  reason text,
  refusal text,
  message text,
  retry_after integer,
  fields jsonb,
  error jsonb,
  data text
);
comment on type core.judged_sms is 'An SMS of a call with the decision about it; refusal is null when it is accepted.';
comment on column core.judged_sms.place is 'From 1, among the items of all calls.';
comment on column core.judged_sms.is_far is 'Whether it waits in app.due_messages and not in the job table.';
comment on column core.judged_sms.price is 'Segments that it costs, out of the plan first and then out of credits.';
comment on column core.judged_sms.credits_left is 'Credits of the organisation once it is paid.';
comment on column core.judged_sms.obstacle is 'Code of the marketing rule that rejects a test message; null when none does.';

create type core.item_result as (
  n integer,
  index integer,
  refusal text,
  message text,
  retry_after integer,
  fields jsonb,
  error jsonb,
  data text
);
comment on type core.item_result is
  'Result of an item of a call, in either channel. data: JSON text of an accepted item. error: the problem that the service found itself.';

create type core.call_response as (
  n integer,
  status smallint,
  code text,
  message text,
  retry_after integer,
  fields jsonb,
  body text,
  is_replayed boolean
);
comment on type core.call_response is 'Response to one call: the columns of api.call_response, which core does not depend on.';

create type core.judged_attempt as (
  message_id uuid,
  organisation_id uuid,
  channel app.channel,
  class app.class,
  attempt integer,
  was_queued boolean,
  was_sent boolean,
  outcome text,
  verdict text,
  is_lost boolean,
  job bigint,
  provider text,
  code text,
  text text,
  retry_in_ms integer,
  ambiguous_since timestamptz
);
comment on type core.judged_attempt is 'The result of an attempt, with what follows for the message.';
comment on column core.judged_attempt.outcome is 'As the worker reports it: sent, failed, deferred or ambiguous.';
comment on column core.judged_attempt.verdict is 'sent, failed, deferred, or none when the message stays as it is.';
comment on column core.judged_attempt.is_lost is 'Whether it is marketing SMS that the network may have: it is not sent twice.';

create type core.email_verdict as (
  message_id uuid,
  organisation_id uuid,
  class app.class,
  verdict text,
  ambiguous_since timestamptz,
  domain text,
  mail_from_domain text,
  domain_id uuid,
  large_bytes integer
);
comment on type core.email_verdict is
  'Whether an email is attempted now. verdict: start, hold, defer, or the code that rejects it.';

create type core.sms_verdict as (
  message_id uuid,
  status app.message_status,
  verdict text,
  reason text,
  has_left boolean
);
comment on type core.sms_verdict is
  'Whether an SMS is attempted now. verdict: start, hold, or the code that ends it. has_left: whether the network may have it.';

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

create type core.stored_receipt as (
  message_id uuid,
  type app.event_type,
  detail jsonb
);
comment on type core.stored_receipt is 'A receipt that had not come before, as it is kept in app.events.';

create type core.message_change as (
  message_id uuid,
  organisation_id uuid,
  change app.event_type
);
comment on type core.message_change is 'A change of a message that reports count and webhook events may report.';

create type core.counted_change as (
  day date,
  organisation_id uuid,
  channel app.channel,
  class app.class,
  tags text[],
  change app.event_type,
  error_code text,
  error_message text,
  latency interval
);
comment on type core.counted_change is 'A change of a message with what the reports sum it by.';

create type core.new_event as (
  id uuid,
  organisation_id uuid,
  type app.webhook_event_type
);
comment on type core.new_event is 'A webhook event that was just written.';

create type core.lease as (
  endpoint_id uuid,
  job bigint,
  worker text,
  in_hand uuid[],
  room integer,
  pause_seconds integer
);
comment on type core.lease is
  'Records of api.start_deliveries(leases), api.release_leases(leases). The exclusive right of a job to deliver to an endpoint, as the job asks for it or gives it up.';
comment on column core.lease.worker is 'null when no worker pool has the job';
comment on column core.lease.in_hand is 'absent in api.release_leases; the events that the job is posting';
comment on column core.lease.room is 'absent in api.release_leases; how many more events the job can post now';
comment on column core.lease.pause_seconds is 'absent in api.start_deliveries; the delay of the next job';

create type core.sealed_secret as (
  endpoint_id uuid,
  replaces_sha256 text,
  sealed text
);
comment on type core.sealed_secret is 'Input of api.store_sealed_secrets(secrets).';
comment on column core.sealed_secret.replaces_sha256 is
  'Hex SHA-256 of the stored text that it replaces. The text itself is not passed, as Postgres may log arguments.';

create type core.personal_record as (
  kind text,
  organisation_id uuid,
  id text,
  at timestamptz,
  data jsonb
);
comment on type core.personal_record is 'One record that names a person, as ops.export_person shows it.';
