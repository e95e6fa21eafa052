-- What is kept of people whose data was erased: that they must not be sent to, by hash.

create table app.person_salt (
  is_only_row boolean primary key default true
    constraint person_salt_one_row check (is_only_row),
  salt bytea not null
    constraint person_salt_length check (length(salt) = 32)
);
insert into app.person_salt (salt)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));
comment on table app.person_salt is
  'The salt of the hashes in app.suppression_hashes, made once for each database.';

create type app.suppression_hash_reason as enum (
  'hard_bounce', 'complaint', 'unsubscribe', 'manual', 'opted_out', 'registry'
);

create table app.suppression_hashes (
  sha256 bytea not null
    constraint suppression_hashes_sha256_length check (length(sha256) = 32),
  organisation_id uuid,
  reason app.suppression_hash_reason not null,
  erased_at timestamptz not null,
  constraint suppression_hashes_one_row unique nulls not distinct (sha256, organisation_id, reason)
);
comment on table app.suppression_hashes is
  'Why erased people must not be sent to, by the SHA-256 of the salt and their address or number. The rows name nobody, and hashes made elsewhere do not match them. But whoever can read this table and the salt can test an address or a number, and there are few enough numbers to test all.';
comment on column app.suppression_hashes.organisation_id is 'null: for all organisations.';
comment on column app.suppression_hashes.reason is
  'Of an address: a value of app.suppression_reason, hard_bounce also for all organisations. Of a number: opted_out, or registry for all.';
