-- Calls that send messages, in either channel, and the responses to them.

create type core.admission as (
  n integer,
  organisation_id uuid,
  mode app.mode,
  scopes text[],
  state app.organisation_state,
  "limit" integer,
  remaining integer,
  retry_after integer,
  refused_for_ms integer
);
comment on type core.admission is 'The caller''s organisation and rate limit; no row for an unknown key.';
comment on column core.admission.retry_after is 'null unless over the limit; seconds';
comment on column core.admission.refused_for_ms is 'null unless over the limit; milliseconds until the second ends';

create type core.call_to_admit as (
  n integer,
  api_key text,
  organisation_id uuid,
  mode app.mode
);
comment on type core.call_to_admit is 'Records of api.admit_calls(calls). A call whose key is not admitted yet.';
comment on column core.call_to_admit.n is 'Identifies the call.';
comment on column core.call_to_admit.api_key is 'SHA-256 in hex.';
comment on column core.call_to_admit.organisation_id is 'To which the key is supposed to belong; the call is refused otherwise.';

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
comment on type core.call_response is 'The response to one call.';
comment on column core.call_response.code is 'null when accepted; else why it is refused';
comment on column core.call_response.message is 'null unless the message of the code says too little; then the message';
comment on column core.call_response.retry_after is 'null unless the call may be repeated after so many seconds';
comment on column core.call_response.fields is 'null unless the refusal names fields';
comment on column core.call_response.body is 'null when refused';
