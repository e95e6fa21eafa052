-- Who changed what. Retention deletes none of it: there are few rows, and they explain an account for as
-- long as its statements are kept.
--
-- Seals show changes to the audit that its functions did not make. Each seal hashes some rows and the
-- seal before. Rows are sealed a minute after they are written, so that no two changes wait for each other.

create table app.audit_seals (
  id bigint primary key,
  rows integer not null
    constraint audit_seals_have_rows check (rows > 0),
  sha256 bytea not null
    constraint audit_seals_sha256_length check (length(sha256) = 32),
  sealed_at timestamptz not null
);
comment on table app.audit_seals is 'Seals on rows of app.audit, numbered from 1 without gaps. Rows never change.';
comment on column app.audit_seals.rows is 'How many rows of app.audit it seals.';
comment on column app.audit_seals.sha256 is
  'SHA-256 of the seal before, this seal''s id, time and count, and the SHA-256 of each of its rows by id.';

create table app.audit_chain (
  is_only_row boolean primary key default true
    constraint audit_chain_one_row check (is_only_row),
  seals bigint not null default 0,
  sha256 bytea not null default ''
);
insert into app.audit_chain default values;
comment on table app.audit_chain is 'The number and SHA-256 of the last seal. Locked while rows are sealed.';

create table app.audit (
  id bigint generated always as identity primary key,
  action text not null
    constraint audit_action_length check (length(action) between 1 and 63),
  actor text not null
    constraint audit_actor_length check (length(actor) between 1 and 200),
  login text not null
    constraint audit_login_length check (length(login) between 1 and 63),
  application_name text not null
    constraint audit_application_name_length check (length(application_name) <= 200),
  organisation_id uuid references app.organisations,
  target text
    constraint audit_target_length check (length(target) <= 300),
  before jsonb,
  after jsonb,
  at timestamptz not null,
  salt uuid not null default gen_random_uuid(),
  seal_id bigint references app.audit_seals,
  sha256 bytea
    constraint audit_sha256_length check (length(sha256) = 32),
  constraint audit_something_changed check (before is distinct from after),
  constraint audit_sealed_has_sha256 check ((seal_id is null) = (sha256 is null))
);
create index audit_unsealed on app.audit (id) where seal_id is null;
create index audit_seal_id on app.audit (seal_id);
comment on table app.audit is
  'Changes by operators, and changes by which the service takes something from an organisation; each is written in the transaction of its change. It never holds a key, a secret or a body.';
comment on column app.audit.action is 'The function of ops; for the actor "service" a function of core or api.';
comment on column app.audit.actor is
  'The login and the role it had taken: "alice", or "alice as postgram_operator". "service" for what the service does by itself.';
comment on column app.audit.login is 'The login (session_user), without its role.';
comment on column app.audit.target is
  'What was changed, as ops shows it; null for the whole service. A person''s address or number is only in this column of the row.';
comment on column app.audit.before is 'The values before, of what the action changes; null where there were none.';
comment on column app.audit.after is 'The values since; null where they were removed.';
comment on column app.audit.salt is
  'Hashed with the row. It is replaced when a person is erased from the row, so that sha256 confirms no guess of the former text.';
comment on column app.audit.seal_id is 'The seal of the row; null until it is sealed.';
comment on column app.audit.sha256 is
  'The SHA-256 of the row when it was sealed. For a row from which a person was erased, the audit row of that erasure (after.audit) has it.';
