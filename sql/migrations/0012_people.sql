-- What is kept of people whose data was erased: that they must not be sent to, without saying who.

create type app.suppression_hash_reason as enum (
  'hard_bounce', 'complaint', 'unsubscribe', 'manual', 'opted_out', 'registry'
);

create table app.person_salt (
  is_only_row boolean primary key default true
    constraint person_salt_one_row check (is_only_row),
  salt bytea not null
    constraint person_salt_length check (length(salt) = 32)
);
insert into app.person_salt (salt)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));
comment on table app.person_salt is
  'What is hashed together with an address or number in app.suppression_hashes, made once for this database.';

create table app.suppression_hashes (
  sha256 bytea not null
    constraint erased_people_sha256_length check (length(sha256) = 32),
  organisation_id uuid not null,
  bar app.suppression_hash_reason not null,
  erased_at timestamptz not null,
  primary key (sha256, organisation_id, bar)
);
comment on table app.suppression_hashes is
  'What stands against sending to people whose data was erased, by the SHA-256 of the salt and their address or number. It names nobody, and no list of hashes made elsewhere fits it; but whoever reads this table and the salt can try an address or a number, and there are few enough numbers to try all.';
comment on column app.suppression_hashes.organisation_id is 'All bits zero: for all organisations.';
comment on column app.suppression_hashes.bar is
  'Of an address one of app.suppression_reason, hard_bounce also for all; of a number opted_out, or registry for all.';
