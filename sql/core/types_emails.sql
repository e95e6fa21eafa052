-- Emails of a call, as they come and once they are judged, and the templates that they use.

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

create type core.rendered_email as (
  subject text,
  html text,
  text text,
  fields jsonb
);
comment on type core.rendered_email is 'A template with its variables filled in.';
comment on column core.rendered_email.fields is 'Problems of the template or the variables; null when there are none. The other columns are null then.';
