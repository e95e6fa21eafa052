-- SMS of a call, as they come and once they are judged.

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
