-- What SMS has beside messages: credits, sender IDs, consent, and the parts that a network carries.

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
  'Every movement of segments: credits granted, SMS paid, refunds. Rows never change. The sum of credits is app.allowances.sms_credits; the negative sum of included over a period is its sms_used.';
comment on column app.credit_ledger.credits is 'Prepaid segments added (positive) or taken (negative).';
comment on column app.credit_ledger.included is 'Segments of the plan returned (positive) or taken (negative).';
comment on column app.credit_ledger.balance is 'Credits after this movement.';
comment on column app.credit_ledger.period_start is 'The billing period whose allowance it changed.';
comment on column app.credit_ledger.message_id is 'The SMS that was paid or refunded; null for a grant.';

create table app.senders (
  organisation_id uuid not null references app.organisations,
  sender text not null
    constraint senders_sender_form check (sender ~ '^\+[1-9][0-9]{6,14}$' or sender ~ '^(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11}$'),
  approved_at timestamptz not null,
  primary key (organisation_id, sender)
);
-- A number has one owner, which receives what is sent to it.
create unique index senders_number_has_one_owner on app.senders (sender) where sender like '+%';
comment on table app.senders is
  'Sender IDs that an organisation may use: approved alphanumeric ones, and its own numbers in E.164.';

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
comment on table app.sms_settings is 'Settings of SMS for the whole service.';
comment on column app.sms_settings.shared_sender is 'The sender ID of an SMS whose caller names none.';
comment on column app.sms_settings.marketing_hours is
  'When marketing may be sent: interface, the hours on the SMS page (src/docs); or statutory, the narrower hours of the law.';

create table app.extra_holidays (
  day date primary key,
  name text not null
    constraint extra_holidays_name_length check (length(name) between 1 and 200)
);
comment on table app.extra_holidays is
  'Public holidays proclaimed for one day, such as an election, which no rule of the calendar gives.';

create table app.consents (
  organisation_id uuid not null references app.organisations,
  phone text not null
    constraint consents_phone_is_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  source text
    constraint consents_source_length check (length(source) between 1 and 1000),
  consented_at timestamptz,
  opted_out_by text
    constraint consents_opted_out_by_length check (length(opted_out_by) between 1 and 200),
  opted_out_at timestamptz,
  primary key (organisation_id, phone),
  constraint consents_consent_has_source check ((consented_at is null) = (source is null)),
  constraint consents_opt_out_has_author check ((opted_out_at is null) = (opted_out_by is null))
);
comment on table app.consents is 'Who consented to marketing SMS of an organisation, and who opted out.';
comment on column app.consents.source is
  'Where and how consent was given, as the organisation must be able to show; null without consent.';
comment on column app.consents.consented_at is 'null when somebody opted out who had never consented.';
comment on column app.consents.opted_out_by is 'The keyword that was received, or the operator who withdrew consent.';

create table app.blocked_numbers (
  phone text primary key
    constraint blocked_numbers_phone_is_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  note text not null default ''
    constraint blocked_numbers_note_length check (length(note) <= 1000),
  created_at timestamptz not null
);
comment on table app.blocked_numbers is
  'Numbers on the national opt-out registry: no organisation may send marketing to them.';

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
  'Parts of SMS that a network accepted, by the id that the network gave each. Its receipts name nothing else.';
comment on column app.sms_parts.network_id is 'The id in the network''s response, in lower case.';

create table app.early_receipts (
  id uuid primary key,
  network_ids text[] not null
    constraint early_receipts_network_ids_count check (cardinality(network_ids) between 1 and 8),
  receipt jsonb not null,
  received_at timestamptz not null
);
-- Without the pending list, which every attempt would have to read.
create index early_receipts_network_ids on app.early_receipts using gin (network_ids) with (fastupdate = off);
create index early_receipts_received_at on app.early_receipts (received_at);
comment on table app.early_receipts is
  'Receipts of parts that are not known yet: a network can report before its response is recorded. Kept for a day.';
comment on column app.early_receipts.network_ids is 'The spellings that the id may have in the response.';
