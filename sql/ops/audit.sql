create view ops.audit as
select a.id, a.at, a.actor, a.application_name, a.action, core.encode_id('org', a.organisation_id) as organisation,
  a.target, a.before, a.after
from app.audit a;

comment on view ops.audit is
  'Who changed what and when: the login and the role that it had taken on, or "service" for what the service did by itself; what was changed, and how it was before and after, null where there was nothing. Order by id desc for the newest first.';
