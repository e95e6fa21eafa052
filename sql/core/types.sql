create type core.rendered_email as (
  subject text,
  html text,
  text text,
  fields jsonb
);
comment on type core.rendered_email is
  'A template with its variables filled in, or, in fields, what is wrong with the request.';

create type core.ending as (
  message_id uuid,
  status app.message_status,
  code text,
  reason text
);
comment on type core.ending is
  'How a message ends without another hand-over: rejected or failed, with an error code of design section 7 and its words.';
