create type core.template_text as (
  literals text[],
  names text[],
  bytes integer
);
comment on type core.template_text is
  'A subject or body of a template, parsed: the text before, between and behind its placeholders, their names, and how many bytes that text has.';

create type core.parsed_template as (
  subject text,
  html core.template_text,
  text core.template_text
);
comment on type core.parsed_template is 'A template as its emails are rendered from it.';

create type core.sized_email as (
  template integer,
  subject text,
  bytes integer,
  fields jsonb
);
comment on type core.sized_email is
  'What is known of a templated email before its bodies are rendered: the place of its template among those parsed, its subject, how many bytes the bodies will have, and what is wrong with the request.';

create type core.ending as (
  message_id uuid,
  status app.message_status,
  code text,
  reason text
);
comment on type core.ending is
  'How a message ends without another hand-over: rejected or failed, with an error code of design section 7 and its words.';

create type core.checked_call as (
  n integer,
  organisation_id uuid,
  mode app.mode,
  key text,
  fingerprint text,
  batch boolean,
  answer text,
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
comment on type core.checked_call is
  'What is known of a call before its items are looked at: answer is null when they are to be judged, else replay or the code with which the call as a whole is refused.';

create type core.outcome as (
  n integer,
  index integer,
  refusal text,
  words text,
  retry_after integer,
  fields jsonb,
  error jsonb,
  data text
);
comment on type core.outcome is
  'What became of an item of a call, in either channel: data, as JSON text, is what a batch answers when there is no refusal; error is the one that the service found itself.';

create type core.answer as (
  n integer,
  status smallint,
  code text,
  words text,
  retry_after integer,
  fields jsonb,
  body text,
  replayed boolean
);
comment on type core.answer is 'What to answer to one call: api.answer, which core does not know.';

create type core.message_change as (
  message_id uuid,
  organisation_id uuid,
  change app.event_type
);
comment on type core.message_change is 'That something happened to a message which a webhook event may report.';

create type core.turn as (
  endpoint_id uuid,
  job bigint,
  worker text,
  in_hand uuid[],
  room integer,
  pause_seconds integer
);
comment on type core.turn is 'Records of api.start_deliveries(turns), api.release_leases(turns). What the job that delivers to an endpoint asks for.';
comment on column core.turn.worker is 'null when no worker pool has the job';
comment on column core.turn.in_hand is 'absent in api.release_leases; the events that it is posting';
comment on column core.turn.room is 'absent in api.release_leases; how many more it may post';
comment on column core.turn.pause_seconds is 'absent in api.start_deliveries; the delay of the next job';

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
comment on type core.personal_record is 'One thing that names a person, as ops.export_person shows it.';
