create view ops.templates as
select core.encode_id('tpl', t.id) as id, core.encode_id('org', t.organisation_id) as organisation, t.name, t.subject,
  core.placeholders(concat_ws(' ', t.subject, t.html, t.text)) as placeholders, t.created_at
from app.templates t;

comment on view ops.templates is 'Templates, with the variables that each needs.';

comment on column ops.templates.id is 'The template''s ID, tpl_…; callers use it as templateId.';
comment on column ops.templates.organisation is 'The organisation''s ID, org_….';
comment on column ops.templates.name is 'The name of the template.';
comment on column ops.templates.subject is 'The subject, with placeholders.';
comment on column ops.templates.placeholders is 'The variables that a request must provide.';
comment on column ops.templates.created_at is 'When the template was created.';
