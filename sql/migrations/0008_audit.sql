-- Who changed what. Rows are never changed, and none goes with retention: there are few, and an
-- account is to be explained for as long as its statements are kept.

create table app.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  actor text not null
    constraint audit_actor_length check (length(actor) between 1 and 200),
  application_name text not null
    constraint audit_application_name_length check (length(application_name) <= 200),
  action text not null
    constraint audit_action_length check (length(action) between 1 and 63),
  organisation_id uuid references app.organisations,
  target text
    constraint audit_target_length check (length(target) <= 300),
  before jsonb,
  after jsonb,
  constraint audit_something_changed check (before is distinct from after)
);
comment on table app.audit is
  'Changes that operators made, and those by which the service itself takes something from an organisation, each in the transaction of the change. Never a key, a secret or a body.';
comment on column app.audit.actor is
  'The login, with the role that it had taken on: "alice", "alice as postgram_operator". What the service does by itself is by "service".';
comment on column app.audit.action is 'The function of ops; where it is by "service", one of core or api.';
comment on column app.audit.target is
  'What was changed, as ops shows it; null for the whole service. Where that is a person''s address or number, it stands here and nowhere else in the row.';
comment on column app.audit.before is 'What was there before, of what the action changes; null where there was nothing.';
comment on column app.audit.after is 'What is there since; null where it was taken away.';
