create function core.template_digest(template app.templates)
returns jsonb
language sql immutable
as $$
  select jsonb_build_object('name', template.name, 'subject', template.subject,
    'html_sha256', encode(sha256(convert_to(template.html, 'UTF8')), 'hex'),
    'text_sha256', encode(sha256(convert_to(template.text, 'UTF8')), 'hex'))
$$;

comment on function core.template_digest is
  'Returns a template as the audit stores it, with the SHA-256 of each body.';
