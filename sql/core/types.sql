create type core.rendered_email as (
  subject text,
  html text,
  text text,
  fields jsonb
);
comment on type core.rendered_email is
  'A template with its variables filled in, or, in fields, what is wrong with the request.';
