-- Sending domains, their DKIM keys, and who claims a name.

create type app.domain_status as enum ('pending', 'verified', 'failed');
create type app.domain_change as enum ('adding', 'removing');

create table app.domains (
  id uuid primary key,
  organisation_id uuid references app.organisations,
  name text not null
    constraint domains_one_holder unique
    constraint domains_name_is_lower_case check (name = lower(name))
    constraint domains_name_length check (length(name) between 3 and 253),
  mail_from_label text not null default 'mail'
    constraint domains_mail_from_label_is_a_label check (mail_from_label ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  status app.domain_status not null default 'pending',
  is_manually_verified boolean not null default false,
  provider text,
  dkim_zone text
    constraint domains_dkim_zone_length check (length(dkim_zone) <= 200),
  records jsonb not null default '[]',
  change app.domain_change,
  change_since timestamptz,
  created_at timestamptz not null default now(),
  verified_at timestamptz,
  wrong_since timestamptz,
  last_checked_at timestamptz not null default now(),
  check_started_at timestamptz,
  next_check_at timestamptz,
  constraint domains_verified_has_time check (status <> 'verified' or verified_at is not null),
  constraint domains_change_has_time check ((change is null) = (change_since is null)),
  constraint domains_released_is_failed check (organisation_id is not null or status = 'failed')
);
create index domains_organisation_id on app.domains (organisation_id);
create index domains_next_check_at on app.domains (next_check_at) where next_check_at is not null;
create index domains_dkim_zone on app.domains (dkim_zone);
create index domains_change_since on app.domains (change_since) where change is not null;
comment on table app.domains is 'Sending domains. One organisation holds a domain.';
comment on column app.domains.organisation_id is
  'null once an operator released the name. The row stays until its entry at the provider is removed.';
comment on column app.domains.is_manually_verified is 'An operator marked it verified: checks do not change that.';
comment on column app.domains.provider is 'The provider that has its sending identity; null until one has.';
comment on column app.domains.dkim_zone is 'The zone that its DKIM CNAMEs point into; null until the provider has its identity.';
comment on column app.domains.records is 'The DNS records to publish, each with the result of the last check.';
comment on column app.domains.change is
  'The change in progress at the provider. A row that is being added is a reservation, which nobody sees yet.';
comment on column app.domains.wrong_since is 'Since when the records of a verified domain are wrong; null while they are right.';
comment on column app.domains.check_started_at is
  'When the check in progress began that a caller asked for. Other callers share its result.';
comment on column app.domains.next_check_at is
  'null when no check is scheduled, as after 72 hours without success.';

create type app.dkim_state as enum ('active', 'next', 'retired');

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
  'The DKIM keys of each domain: the one that signs (active), the next one, and the last one (retired).';
comment on column app.dkim_keys.host is
  'The host name of its TXT record (core.dkim_host), stored so that a name server finds it by an index.';
comment on column app.dkim_keys.value is 'The TXT value to publish.';
comment on column app.dkim_keys.private_key is 'Sealed with SECRET_KEY; null when the provider keeps it.';

create table app.domain_claims (
  name text not null
    constraint domain_claims_name_length check (length(name) between 3 and 253),
  organisation_id uuid not null references app.organisations,
  asked_at timestamptz,
  barred_until timestamptz,
  primary key (name, organisation_id),
  constraint domain_claims_say_something check (asked_at is not null or barred_until is not null)
);
create index domain_claims_organisation_id on app.domain_claims (organisation_id);
comment on table app.domain_claims is 'Organisations that compete for a domain name which none has verified.';
comment on column app.domain_claims.asked_at is
  'When the organisation last asked for the name while another one held it; null if never.';
comment on column app.domain_claims.barred_until is
  'Until when the organisation cannot add the name, because its last claim lapsed and another organisation had asked; null if it can.';

-- Unlogged: after a crash of the server the calls of the last seconds do not matter.
create unlogged table app.provider_calls (
  organisation_id uuid primary key,
  allowed double precision not null,
  counted_at timestamptz not null
) with (fillfactor = 20);
comment on table app.provider_calls is
  'How many calls about domains each organisation could still make at counted_at (core.limit_provider_calls).';
