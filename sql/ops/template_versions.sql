create view ops.template_versions as
select core.encode_id('tpl', t.id) as template, core.encode_id('org', t.organisation_id) as organisation,
  v.version, v.is_present, v.changed_at, v.changed_by, v.name, v.subject, v.html, v.text
from app.templates t
cross join lateral (
  select t.version, true as is_present, coalesce(t.changed_at, t.created_at) as changed_at, t.changed_by,
    t.name, t.subject, t.html, t.text
  union all
  select f.version, false, f.changed_at, f.changed_by, f.name, f.subject, f.html, f.text
  from app.template_versions f
  where f.template_id = t.id
) v;

comment on view ops.template_versions is
  'Present and former versions of templates with their content. The newest 50 former versions of each template are kept. Filter by template or organisation.';

comment on column ops.template_versions.template is 'The template''s ID, tpl_….';
comment on column ops.template_versions.organisation is 'The organisation''s ID, org_….';
comment on column ops.template_versions.version is 'The number of the version, from 1, for ops.restore_template.';
comment on column ops.template_versions.is_present is 'Whether new requests use this version.';
comment on column ops.template_versions.changed_at is 'When the version was made.';
comment on column ops.template_versions.changed_by is 'Who made it: a user of the dashboard or a login. null: made before versions were kept.';
comment on column ops.template_versions.name is 'The name of the template in this version.';
comment on column ops.template_versions.subject is 'The subject, with placeholders.';
comment on column ops.template_versions.html is 'The HTML body, with placeholders; null for none.';
comment on column ops.template_versions.text is 'The text body, with placeholders; null for none.';
