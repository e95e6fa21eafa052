-- Attempts to send messages and notices: whether one begins, and what its result changes.

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

create type core.message_to_enqueue as (
  message_id uuid,
  priority integer,
  run_at timestamptz
);
comment on type core.message_to_enqueue is 'A message that gets a job. run_at: the server''s real time; null: at once.';

create type core.ending as (
  message_id uuid,
  status app.message_status,
  code text,
  reason text
);
comment on type core.ending is
  'The end of a message that is not attempted again: rejected or failed, with an error code and its text.';

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
