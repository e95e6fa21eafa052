create view ops.audit as
select a.id, a.at, a.actor, a.application_name, a.action, core.encode_id('org', a.organisation_id) as organisation,
  a.target, a.before, a.after, a.login, a.seal_id as seal
from app.audit a;

comment on view ops.audit is
  'Audit: every change, with its actor, time and the values before and after. The actor is the login and the role that it had assumed, or "service". Add "order by id desc" for the newest first.';

comment on column ops.audit.id is 'Sequence number; higher is newer.';
comment on column ops.audit.at is 'When the change was made.';
comment on column ops.audit.actor is 'The login, with the role that it had assumed; or service.';
comment on column ops.audit.application_name is 'The application name of the session, such as psql.';
comment on column ops.audit.action is 'The function of schema ops, or the name of an automatic action of the service.';
comment on column ops.audit.organisation is 'The organisation that the change affects, org_…; null if it affects none or all.';
comment on column ops.audit.target is 'The ID, name or prefix of the changed object.';
comment on column ops.audit.before is 'The changed values before the change; null if there were none.';
comment on column ops.audit.after is 'The changed values after the change; null if there are none.';
comment on column ops.audit.login is 'The login of the session, also where the actor is service.';
comment on column ops.audit.seal is
  'The seal that covers the row, see ops.audit_seals; null until the row is sealed, which takes at most two minutes.';
