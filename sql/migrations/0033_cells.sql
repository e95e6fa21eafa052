-- Cells: services of which each has its own Postgres, and lists that they share by logical replication. Each cell
-- writes only rows with its own number, so that the rows of two cells never conflict.

create table app.cell (
  is_only_row boolean primary key default true
    constraint cell_one_row check (is_only_row),
  number smallint not null default 1
    constraint cell_number_has_letter check (number between 1 and 26),
  letter text not null generated always as (chr(96 + number)) stored,
  name text not null default 'main'
    constraint cell_name_length check (length(name) between 1 and 100)
);
insert into app.cell default values;
comment on table app.cell is 'This cell. A service without other cells is cell 1.';
comment on column app.cell.letter is 'The letter of the number, a to z: in the API keys of every cell but the first.';

create table app.cells (
  number smallint primary key
    constraint cells_number_has_letter check (number between 1 and 26),
  letter text not null generated always as (chr(96 + number)) stored,
  name text not null
    constraint cells_name_length check (length(name) between 1 and 100),
  subscription text not null
    constraint cells_subscription_length check (length(subscription) between 1 and 63),
  joined_at timestamptz not null
);
comment on table app.cells is 'The other cells that this one has joined.';
comment on column app.cells.subscription is 'The subscription that brings the lists of the other cell.';

create table app.cell_heartbeats (
  cell smallint primary key,
  heartbeat_at timestamptz not null
) with (fillfactor = 50);
comment on table app.cell_heartbeats is
  'The last heartbeat of each cell. It arrives with the lists, so its age is how far they are behind.';

-- A constant default rewrites no row. The command "join" adds the number to the keys, by an index that it builds
-- beside the writers: until then all rows are of this cell.
alter table app.hard_bounces
  add column cell smallint not null default 1,
  add column removed_at timestamptz;
alter table app.hard_bounces alter column cell drop default;
comment on table app.hard_bounces is
  'Mailboxes that do not exist: suppressed for every organisation. The newest row of an address, of any cell, decides.';
comment on column app.hard_bounces.cell is 'The cell that wrote the row.';
comment on column app.hard_bounces.removed_at is
  'When this cell removed the suppression, which other cells have written as well; null while it applies.';

alter table app.blocked_numbers
  add column cell smallint not null default 1,
  add column removed_at timestamptz;
alter table app.blocked_numbers alter column cell drop default;
comment on table app.blocked_numbers is
  'Numbers on the national opt-out registry: no organisation may send marketing to them. The newest row of a number, of any cell, decides.';
comment on column app.blocked_numbers.cell is 'The cell that wrote the row.';
comment on column app.blocked_numbers.removed_at is
  'When this cell unblocked the number, which other cells have blocked as well; null while it is blocked.';

create table app.global_suppression_hashes (
  sha256 bytea not null
    constraint global_suppression_hashes_sha256_length check (length(sha256) = 32),
  reason app.suppression_hash_reason not null
    constraint global_suppression_hashes_reason_is_global check (reason in ('hard_bounce', 'registry')),
  cell smallint not null,
  erased_at timestamptz not null,
  removed_at timestamptz,
  primary key (sha256, reason, cell)
);
comment on table app.global_suppression_hashes is
  'As app.suppression_hashes, for all organisations: the hard bounces and blocked numbers of erased people. The newest row of a hash and reason, of any cell, decides.';
comment on column app.global_suppression_hashes.cell is 'The cell that wrote the row.';
comment on column app.global_suppression_hashes.removed_at is
  'When this cell removed the suppression, which other cells have written as well; null while it applies.';

insert into app.global_suppression_hashes (sha256, reason, cell, erased_at)
select h.sha256, h.reason, 1, h.erased_at from app.suppression_hashes h where h.organisation_id is null;
delete from app.suppression_hashes h where h.organisation_id is null;
alter table app.suppression_hashes
  alter column organisation_id set not null;
comment on table app.suppression_hashes is
  'Reasons that forbid an organisation to send to erased people, by the SHA-256 of the salt and their address or number. The rows contain no address or number, and hashes made elsewhere do not match them. A reader of this table and of the salt can test an address or a number, and there are few enough numbers to test all.';
comment on column app.suppression_hashes.organisation_id is null;
comment on column app.suppression_hashes.reason is
  'Of an address: a value of app.suppression_reason. Of a number: opted_out.';
comment on table app.person_salt is
  'The salt of the hashes in app.suppression_hashes and app.global_suppression_hashes, made once for each database; joined cells have the same.';

create table app.name_claims (
  name text not null
    constraint name_claims_name_length check (length(name) between 3 and 253),
  cell smallint not null,
  claimed_at timestamptz not null,
  verified_at timestamptz,
  primary key (name, cell)
);
comment on table app.name_claims is
  'The domain names that each cell holds: those of its pending and verified domains. Of two cells, the earlier claim wins.';
comment on column app.name_claims.verified_at is 'null while the domain is pending.';

insert into app.name_claims (name, cell, claimed_at, verified_at)
select d.name, 1, d.created_at, case d.status when 'verified' then d.verified_at end
from app.domains d
where d.organisation_id is not null and d.status <> 'failed';
