-- What an organisation may send from, what it sends, and whom it must not reach.

create type app.class as enum ('transactional', 'marketing');
create type app.domain_status as enum ('pending', 'verified', 'failed');
create type app.suppression_reason as enum ('hard_bounce', 'complaint', 'unsubscribe', 'manual');

create type app.domain_change as enum ('adding', 'removing');
create type app.dkim_state as enum ('active', 'next', 'retired');

create table app.domains (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  name text not null
    constraint domains_one_holder unique
    constraint domains_name_is_lower_case check (name = lower(name))
    constraint domains_name_length check (length(name) between 3 and 253),
  status app.domain_status not null default 'pending',
  mail_from_label text not null default 'mail'
    constraint domains_mail_from_label_is_a_label check (mail_from_label ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  provider text,
  dkim_zone text
    constraint domains_dkim_zone_length check (length(dkim_zone) <= 200),
  records jsonb not null default '[]',
  is_manually_verified boolean not null default false,
  change app.domain_change,
  change_since timestamptz
    constraint domains_change_has_time check ((change is null) = (change_since is null)),
  verified_at timestamptz
    constraint domains_verified_has_time check (status <> 'verified' or verified_at is not null),
  wrong_since timestamptz,
  last_checked_at timestamptz not null default now(),
  next_check_at timestamptz,
  created_at timestamptz not null default now()
);
create index domains_organisation_id on app.domains (organisation_id);
create index domains_next_check_at on app.domains (next_check_at) where next_check_at is not null;
create index domains_dkim_zone on app.domains (dkim_zone);
create index domains_change_since on app.domains (change_since) where change is not null;
comment on table app.domains is 'Sending domains; a domain has one holder.';
comment on column app.domains.provider is 'Where its sending identity was made, as providers name themselves; null until it was.';
comment on column app.domains.dkim_zone is 'Where its DKIM CNAMEs point into; null until the provider has made the identity.';
comment on column app.domains.records is 'The DNS records to publish, each with what the last check found (interface 2.3).';
comment on column app.domains.is_manually_verified is 'An operator said that it is verified: checks do not take that back.';
comment on column app.domains.change is
  'What is under way at the provider: the row of one that is being added is a reservation and seen by nobody yet.';
comment on column app.domains.wrong_since is 'Since when a verified domain''s records are not right.';
comment on column app.domains.next_check_at is 'null when no check is to come by itself, as after 72 hours without success.';

create table app.dkim_keys (
  domain_id uuid not null references app.domains on delete cascade,
  selector text not null
    constraint dkim_keys_selector_is_a_label check (selector ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  state app.dkim_state not null,
  host text not null
    constraint dkim_keys_one_per_host unique
    constraint dkim_keys_host_is_lower_case check (host = lower(host))
    constraint dkim_keys_host_length check (length(host) <= 253),
  value text not null
    constraint dkim_keys_value_length check (length(value) between 1 and 4000)
    constraint dkim_keys_value_is_printable check (value ~ '^[\x20-\x7e]*$'),
  private_key text
    constraint dkim_keys_private_key_length check (length(private_key) between 1 and 8000),
  created_at timestamptz not null,
  primary key (domain_id, selector),
  constraint dkim_keys_one_of_each_state unique (domain_id, state) deferrable initially deferred
);
comment on table app.dkim_keys is
  'What stands in the DKIM zone for each domain: the key that signs, the next one, and the last.';
comment on column app.dkim_keys.host is
  'Where it is published, as core.dkim_host() says: kept, so that a name server finds it by an index.';
comment on column app.dkim_keys.value is 'The TXT value to publish.';
comment on column app.dkim_keys.private_key is 'Sealed with SECRET_KEY; null when the provider keeps it.';

create table app.templates (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  name text not null
    constraint templates_name_length check (length(name) between 1 and 200),
  subject text not null,
  html text,
  text text,
  created_at timestamptz not null default now(),
  constraint templates_have_a_body check (html is not null or text is not null)
);
create index templates_organisation_id on app.templates (organisation_id);
comment on table app.templates is 'Subjects and bodies with {{placeholders}}.';

create table app.suppressions (
  organisation_id uuid not null references app.organisations,
  id uuid not null,
  email text not null
    constraint suppressions_email_is_lower_case check (email = lower(email))
    constraint suppressions_email_length check (length(email) between 3 and 254),
  reason app.suppression_reason not null,
  other_reasons app.suppression_reason[] not null default '{}',
  message_id uuid,
  note text not null default ''
    constraint suppressions_note_length check (length(note) <= 2000),
  created_at timestamptz not null default now(),
  primary key (organisation_id, id),
  constraint suppressions_one_per_address unique (organisation_id, email)
);
do $$
begin
  -- Where an operator installed it before, it may be in any schema.
  create extension if not exists pg_trgm schema public;
  -- With the organisation, so that it does not matter how many entries of others match; as an array,
  -- because GIN has no operators for a bare uuid.
  execute format(
    'create index suppressions_search on app.suppressions
      using gin ((array[organisation_id]), email %s.gin_trgm_ops)',
    (select e.extnamespace::regnamespace from pg_extension e where e.extname = 'pg_trgm'));
end
$$;
comment on table app.suppressions is
  'Addresses that an organisation must not send to; of a hard bounce it sees its own copy here.';
comment on column app.suppressions.other_reasons is
  'Further reasons, of which one shows when this one is lifted: who unsubscribed must not get marketing again because a bounce was forgiven.';

create table app.hard_bounces (
  email text primary key
    constraint hard_bounces_email_is_lower_case check (email = lower(email))
    constraint hard_bounces_email_length check (length(email) between 3 and 254),
  note text not null default ''
    constraint hard_bounces_note_length check (length(note) <= 2000),
  message_id uuid,
  created_at timestamptz not null default now()
);
comment on table app.hard_bounces is
  'Mailboxes that do not exist: suppressed for every organisation (interface 2.4).';
