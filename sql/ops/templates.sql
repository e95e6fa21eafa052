create view ops.templates as
select core.encode_id('tpl', t.id) as id, core.encode_id('org', t.organisation_id) as organisation, t.name, t.subject,
  core.placeholders(concat_ws(' ', t.subject, t.html, t.text)) as placeholders, t.created_at
from app.templates t;

comment on view ops.templates is 'Templates and the variables that they need.';
