-- API keys, and the requests made with them.

create type app.scope as enum ('emails:send', 'sms:send', 'read', 'domains:write');

create table app.api_keys (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  mode app.mode not null,
  scopes app.scope[] not null
    constraint api_keys_have_a_scope check (cardinality(scopes) > 0),
  prefix text not null
    constraint api_keys_prefix_length check (length(prefix) between 8 and 32),
  sha256 bytea not null
    constraint api_keys_sha256_unique unique
    constraint api_keys_sha256_length check (length(sha256) = 32),
  created_at timestamptz not null default now(),
  last_used_on date,
  revoked_at timestamptz
);
create index api_keys_organisation_id on app.api_keys (organisation_id);
comment on table app.api_keys is
  'API keys by their SHA-256. A key has 244 random bits, so a slow hash would add no protection.';
comment on column app.api_keys.prefix is 'The first characters of the key, by which people recognise it.';
comment on column app.api_keys.last_used_on is 'The UTC day of the last request; null if there was none.';

-- Unlogged: after a crash of the server the count of the lost second does not matter.
create unlogged table app.request_counts (
  organisation_id uuid primary key,
  second bigint not null,
  requests integer not null
) with (fillfactor = 20);
comment on table app.request_counts is
  'Requests of each organisation in its last second with requests, over all keys and processes.';
comment on column app.request_counts.second is 'Seconds since 1970.';

create table app.idempotency_keys (
  organisation_id uuid not null,
  mode app.mode not null,
  key text not null
    constraint idempotency_keys_length check (length(key) between 1 and 300),
  fingerprint text not null,
  status smallint,
  body text,
  created_at timestamptz not null,
  primary key (organisation_id, mode, key, created_at),
  constraint idempotency_keys_response_is_whole check ((status is null) = (body is null))
) partition by range (created_at);
comment on table app.idempotency_keys is
  'Responses, kept for 24 hours. The lock on the organisation makes a key unique, not an index: so a whole day can be dropped.';
comment on column app.idempotency_keys.fingerprint is 'Identifies the request, so that another one with the same key is refused.';
comment on column app.idempotency_keys.status is 'HTTP status of the response; null while the request is in progress.';
