-- What SMS needs beyond what all messages have: money, senders, who must not get marketing, and what
-- networks say of parts.

create type app.credit_kind as enum ('grant', 'sms', 'refund');

create table app.credit_ledger (
  organisation_id uuid not null,
  id bigint generated always as identity,
  kind app.credit_kind not null,
  credits integer not null,
  included integer not null default 0,
  balance integer not null
    constraint credit_ledger_balance_not_negative check (balance >= 0),
  period_start timestamptz not null,
  message_id uuid,
  note text not null default ''
    constraint credit_ledger_note_length check (length(note) <= 1000),
  created_at timestamptz not null,
  primary key (organisation_id, id),
  constraint credit_ledger_once_per_message unique (message_id, kind),
  constraint credit_ledger_signs check (case kind
    when 'grant' then credits <> 0 and included = 0 and message_id is null
    when 'sms' then credits <= 0 and included <= 0 and message_id is not null
    when 'refund' then credits >= 0 and included >= 0 and message_id is not null
  end)
);
comment on table app.credit_ledger is
  'Every movement of segments: credits that were granted, SMS that were paid, refunds. Rows are never changed. The sum of credits is app.allowances.sms_credits; less the sum of included of a period is its sms_used.';
comment on column app.credit_ledger.credits is 'Prepaid segments that came (positive) or went.';
comment on column app.credit_ledger.included is 'Segments taken out of what the plan includes (negative), or given back.';
comment on column app.credit_ledger.balance is 'Credits after this movement.';
comment on column app.credit_ledger.period_start is 'The billing period whose allowance it moved.';

create table app.senders (
  organisation_id uuid not null references app.organisations,
  sender text not null
    constraint senders_sender_form check (sender ~ '^\+[1-9][0-9]{6,14}$' or sender ~ '^(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11}$'),
  approved_at timestamptz not null,
  primary key (organisation_id, sender)
);
-- A number has one owner: what is sent to it is for that organisation.
create unique index senders_number_has_one_owner on app.senders (sender) where sender like '+%';
comment on table app.senders is
  'Sender IDs that an organisation may use: approved alphanumeric ones, and its own numbers, in E.164.';

create type app.hours_rule as enum ('interface', 'statutory');

create table app.sms_settings (
  is_only_row boolean primary key default true
    constraint sms_settings_one_row check (is_only_row),
  shared_sender text not null default 'Postgram'
    constraint sms_settings_shared_sender_form
      check (shared_sender ~ '^\+[1-9][0-9]{6,14}$' or shared_sender ~ '^(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11}$'),
  marketing_hours app.hours_rule not null default 'interface'
);
insert into app.sms_settings default values;
comment on table app.sms_settings is 'What an operator decides for the whole service.';
comment on column app.sms_settings.shared_sender is 'Who an SMS is from whose caller names nobody.';
comment on column app.sms_settings.marketing_hours is
  'When marketing may be sent: as the interface says, or in the narrower hours of the law.';

create table app.extra_holidays (
  day date primary key,
  name text not null
    constraint extra_holidays_name_length check (length(name) between 1 and 200)
);
comment on table app.extra_holidays is
  'Public holidays that were proclaimed for one day, such as that of an election, which no calendar knows beforehand.';

create table app.consents (
  organisation_id uuid not null references app.organisations,
  phone text not null
    constraint consents_phone_is_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  source text
    constraint consents_source_length check (length(source) between 1 and 1000),
  consented_at timestamptz,
  opted_out_at timestamptz,
  opted_out_by text
    constraint consents_opted_out_by_length check (length(opted_out_by) between 1 and 200),
  primary key (organisation_id, phone),
  constraint consents_consent_has_source check ((consented_at is null) = (source is null)),
  constraint consents_opt_out_has_author check ((opted_out_at is null) = (opted_out_by is null))
);
comment on table app.consents is
  'Who agreed to marketing by SMS and who opted out, by organisation. A record without consented_at is an opt-out of somebody who never agreed.';
comment on column app.consents.source is 'Where and how consent was given, as the organisation must be able to show.';
comment on column app.consents.opted_out_by is 'The word that was sent, or who withdrew it.';

create table app.blocked_numbers (
  phone text primary key
    constraint blocked_numbers_phone_is_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  note text not null default ''
    constraint blocked_numbers_note_length check (length(note) <= 1000),
  created_at timestamptz not null
);
comment on table app.blocked_numbers is
  'Numbers on the national opt-out registry: no marketing to them from anybody.';

create table app.sms_parts (
  message_id uuid not null,
  part smallint not null
    constraint sms_parts_part_from_one check (part > 0),
  provider text not null,
  network_id text not null
    constraint sms_parts_network_id_length check (length(network_id) between 1 and 65),
  phone text not null,
  taken_at timestamptz not null,
  primary key (message_id, part)
);
create index sms_parts_network_id on app.sms_parts (network_id);
comment on table app.sms_parts is
  'The parts of SMS that a network took, by the id that it gave each, which is all that its receipts name.';
comment on column app.sms_parts.network_id is 'In lower case, as the network wrote it in its answer.';

create table app.early_receipts (
  id uuid primary key,
  network_ids text[] not null
    constraint early_receipts_network_ids_count check (cardinality(network_ids) between 1 and 8),
  receipt jsonb not null,
  received_at timestamptz not null
);
-- Without its list of what is still to be sorted in, which every hand-over would have to read through.
create index early_receipts_network_ids on app.early_receipts using gin (network_ids) with (fastupdate = off);
create index early_receipts_received_at on app.early_receipts (received_at);
comment on table app.early_receipts is
  'Receipts for parts that we do not know yet: a network may report before we noted its answer. Kept for a day.';
comment on column app.early_receipts.network_ids is 'The spellings that the id may have had in the answer.';
