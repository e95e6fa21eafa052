create view ops.templates as
select core.encode_id('tpl', t.id) as id, core.encode_id('org', t.organisation_id) as organisation, t.name, t.subject,
  core.placeholders(concat_ws(' ', t.subject, t.html, t.text)) as placeholders, t.created_at,
  t.version, coalesce(t.changed_at, t.created_at) as changed_at, t.changed_by
from app.templates t;

comment on view ops.templates is 'Templates, with the variables that each needs.';

comment on column ops.templates.id is 'The template''s ID, tpl_…; callers use it as templateId.';
comment on column ops.templates.organisation is 'The organisation''s ID, org_….';
comment on column ops.templates.name is 'The name of the template.';
comment on column ops.templates.subject is 'The subject, with placeholders.';
comment on column ops.templates.placeholders is 'The variables that a request must provide.';
comment on column ops.templates.created_at is 'When the template was created.';
comment on column ops.templates.version is 'The number of its present version; ops.template_versions has the former ones.';
comment on column ops.templates.changed_at is 'When the present version was made.';
comment on column ops.templates.changed_by is 'Who made the present version; null if it was made before versions were kept.';
