create view ops.audit as
select a.id, a.at, a.actor, a.application_name, a.action, core.encode_id('org', a.organisation_id) as organisation,
  a.target, a.before, a.after, a.login, a.seal_id as seal
from app.audit a;

comment on view ops.audit is
  'Who changed what and when, with the values before and after. The actor is the login and the role that it had taken on, or "service" for what the service did by itself; before and after are null where there was nothing. Order by id desc for the newest first.';

comment on column ops.audit.id is 'Counts up: the higher, the newer.';
comment on column ops.audit.at is 'When the change was made.';
comment on column ops.audit.actor is 'The login, with the role that it had taken on; or service.';
comment on column ops.audit.application_name is 'What the session called itself, such as psql.';
comment on column ops.audit.action is 'The function of ops, or what the service did by itself.';
comment on column ops.audit.organisation is 'The organisation that it was about, org_…; null when it was about none or about all.';
comment on column ops.audit.target is 'What was changed, by its id, name or prefix.';
comment on column ops.audit.before is 'What it was before, of that which changed; null where there was nothing.';
comment on column ops.audit.after is 'What it is since; null where nothing is left.';
comment on column ops.audit.login is 'Who was logged in, also where the actor is service; null in rows from before it was noted.';
comment on column ops.audit.seal is 'The seal that the row is under, see ops.audit_seals; null until it is sealed, within a minute or two.';
