-- A change to the audit that its functions did not make is noticed: rows are sealed soon after they are
-- written, and each seal hashes the one before it. Rows are sealed later than written so that no two
-- changes wait for each other.

create table app.audit_seals (
  id bigint primary key,
  sealed_at timestamptz not null,
  rows integer not null
    constraint audit_seals_have_rows check (rows > 0),
  sha256 bytea not null
    constraint audit_seals_sha256_length check (length(sha256) = 32)
);
comment on table app.audit_seals is
  'Seals on rows of app.audit, numbered from 1 without gaps. Rows are never changed.';
comment on column app.audit_seals.sha256 is
  'SHA-256 of the seal before, this one''s id, time and count, and the SHA-256 of each of its rows by id.';

create table app.audit_chain (
  is_only_row boolean primary key default true
    constraint audit_chain_one_row check (is_only_row),
  seals bigint not null default 0,
  sha256 bytea not null default ''
);
insert into app.audit_chain default values;
comment on table app.audit_chain is 'The last seal: its number and its SHA-256. Locked while rows are sealed.';

alter table app.audit
  add login text
    constraint audit_login_length check (length(login) between 1 and 63),
  add salt uuid not null default gen_random_uuid(),
  add seal_id bigint references app.audit_seals,
  add sha256 bytea
    constraint audit_sha256_length check (length(sha256) = 32),
  add constraint audit_sealed_has_sha256 check ((seal_id is null) = (sha256 is null));
create index audit_unsealed on app.audit (id) where seal_id is null;
create index audit_seal_id on app.audit (seal_id);
comment on column app.audit.login is
  'Who was logged in (session_user), whatever role they had taken on; null in rows from before it was noted.';
comment on column app.audit.salt is
  'Hashed with the row, and replaced when a person''s data is erased from it: then sha256 does not confirm a guess of what stood there.';
comment on column app.audit.seal_id is 'The seal that the row is under; null until it is sealed.';
comment on column app.audit.sha256 is
  'The row''s SHA-256 when it was sealed. The one of a row from which a person was erased is in the row of that erasure (after.audit).';
