create view ops.templates as
select core.encode_id('tpl', t.id) as id, core.encode_id('org', t.organisation_id) as organisation, t.name, t.subject,
  core.placeholders(concat_ws(' ', t.subject, t.html, t.text)) as placeholders, t.created_at
from app.templates t;

comment on view ops.templates is
  'Templates and the variables that they need.';

comment on column ops.templates.id is 'tpl_…, which callers name as templateId.';
comment on column ops.templates.organisation is 'The organisation''s id, org_….';
comment on column ops.templates.name is 'What it is called.';
comment on column ops.templates.subject is 'Its subject, with placeholders.';
comment on column ops.templates.placeholders is 'The variables that a request has to bring.';
comment on column ops.templates.created_at is 'When it was made.';
