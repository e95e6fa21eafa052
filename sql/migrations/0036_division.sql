-- Division of a cell: a copy of its database becomes another cell, and each of both keeps other organisations. And
-- receipts that arrive at a cell which does not have their message.

create table app.division (
  is_only_row boolean primary key default true
    constraint division_one_row check (is_only_row),
  id uuid not null,
  number smallint not null
    constraint division_number_has_letter check (number between 1 and 26),
  name text not null
    constraint division_name_length check (length(name) between 1 and 100),
  organisation_ids uuid[] not null
    constraint division_has_organisations check (cardinality(organisation_ids) > 0),
  database oid not null,
  timeline integer not null,
  begun_at timestamptz not null
);
comment on table app.division is
  'The division of this cell that has begun and has not ended. No process of the service starts meanwhile.';
comment on column app.division.number is 'The number that the copy gets.';
comment on column app.division.organisation_ids is 'The organisations that move to the copy.';
comment on column app.division.database is 'The database in which it began. A copy made by Postgres inside the same server has another one.';
comment on column app.division.timeline is 'The timeline of the server when it began. A standby that was promoted has another one.';

create table app.moved_organisations (
  organisation_id uuid primary key references app.organisations,
  cell smallint not null,
  moved_at timestamptz not null,
  endpoint_ids uuid[] not null default '{}',
  numbers text[] not null default '{}',
  emptied_at timestamptz,
  purged_terms text
    constraint moved_organisations_purged_terms_length check (length(purged_terms) between 1 and 63),
  purged_at timestamptz
);
create index moved_organisations_to_purge on app.moved_organisations (organisation_id) where purged_at is null;
comment on table app.moved_organisations is
  'Organisations that are in another cell since a division. Their rows of app.organisations stay, because the audit names them.';
comment on column app.moved_organisations.cell is 'The cell that has the organisation.';
comment on column app.moved_organisations.endpoint_ids is 'Its webhook endpoints, by which their attempts are found.';
comment on column app.moved_organisations.numbers is 'Its own numbers as sender IDs, to which replies may still arrive here.';
comment on column app.moved_organisations.emptied_at is
  'When the last of its rows was deleted, apart from the index of the search; null before.';
comment on column app.moved_organisations.purged_terms is
  'The last partition of app.message_terms whose rows of the organisation were deleted; null before the first.';
comment on column app.moved_organisations.purged_at is 'When nothing of the organisation was left to delete; null before.';

create table app.forwarded_receipts (
  cell smallint not null,
  id uuid not null,
  kind text not null
    constraint forwarded_receipts_kind check (kind in ('receipt', 'sms_receipt', 'keyword', 'unsubscribe')),
  content jsonb not null,
  received_at timestamptz not null,
  taken_at timestamptz,
  primary key (cell, id)
);
create index forwarded_receipts_received_at on app.forwarded_receipts (received_at);
comment on table app.forwarded_receipts is
  'Receipts, keywords and unsubscribes that arrived at a cell without their message: the other cells take them. Kept for a day.';
comment on column app.forwarded_receipts.cell is 'The cell that received it, and wrote the row.';
comment on column app.forwarded_receipts.id is 'A hash of the content, so that a repeated receipt is forwarded once.';
comment on column app.forwarded_receipts.kind is
  'receipt (core.receipt), sms_receipt (core.sms_receipt), keyword (core.keyword_sms) or unsubscribe (the arguments of api.unsubscribe).';
comment on column app.forwarded_receipts.taken_at is 'When this cell took it from the other one; null before, and in the cell that wrote the row.';
