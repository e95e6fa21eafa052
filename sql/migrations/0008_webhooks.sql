-- Webhook endpoints, events, and deliveries. Events and attempts are partitioned by range on the UUIDv7
-- of the event, as messages are.

create table app.sealing_keys (
  id uuid primary key,
  modulus numeric not null
    constraint sealing_keys_modulus_has_2048_bits check (modulus between 2::numeric ^ 2047 and 2::numeric ^ 2048),
  private_key text not null,
  created_at timestamptz not null
);
comment on table app.sealing_keys is
  'RSA keys (exponent 65537) with which the database makes secrets that only the service can read. The newest is in use.';
comment on column app.sealing_keys.private_key is 'PKCS #8 in base64, sealed with SECRET_KEY by the service that made it.';

create table app.webhook_settings (
  is_only_row boolean primary key default true
    constraint webhook_settings_one_row check (is_only_row),
  allows_private boolean not null default false
);
insert into app.webhook_settings default values;
comment on table app.webhook_settings is 'Settings of the service that functions of ops need as well.';
comment on column app.webhook_settings.allows_private is 'WEBHOOK_ALLOW_PRIVATE of the process that started last.';

create type app.webhook_event_type as enum (
  'email.sent', 'email.delivered', 'email.bounced', 'email.complained', 'email.failed',
  'sms.sent', 'sms.delivered', 'sms.failed', 'sms.opted_out'
);

create table app.webhook_endpoints (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  url text not null
    constraint webhook_endpoints_url_length check (length(url) between 1 and 2000),
  event_types app.webhook_event_type[] not null
    constraint webhook_endpoints_have_event_types check (cardinality(event_types) > 0),
  secret text not null,
  old_secret text,
  old_secret_until timestamptz,
  lease_job_id bigint,
  last_error text,
  failing_since timestamptz,
  failed_at timestamptz,
  warned_at timestamptz,
  disabled_reason text,
  disabled_at timestamptz,
  created_at timestamptz not null,
  constraint webhook_endpoints_old_secret_ends check ((old_secret is null) = (old_secret_until is null)),
  constraint webhook_endpoints_reason_if_disabled check (disabled_reason is null or disabled_at is not null)
) with (fillfactor = 50);
create index webhook_endpoints_organisation_id on app.webhook_endpoints (organisation_id);
comment on table app.webhook_endpoints is 'The URLs to which organisations have their events delivered.';
comment on column app.webhook_endpoints.secret is 'Signs its deliveries; sealed by core.make_secret.';
comment on column app.webhook_endpoints.old_secret is 'The secret before, which signs as well for 24 hours.';
comment on column app.webhook_endpoints.lease_job_id is
  'The graphile-worker job that has the lease: only that job delivers here, which bounds the deliveries in progress. The lease is free once the job is gone or unlocked.';
comment on column app.webhook_endpoints.last_error is 'Why the last attempt failed; null when it succeeded.';
comment on column app.webhook_endpoints.failing_since is 'The first failure since the last success; null while deliveries succeed.';
comment on column app.webhook_endpoints.failed_at is 'The last failure, to the minute.';
comment on column app.webhook_endpoints.warned_at is 'When its owner was told that it fails; null while it does not.';
comment on column app.webhook_endpoints.disabled_at is
  'Since when it is disabled: its events are kept, but not delivered. null while it is enabled.';
comment on column app.webhook_endpoints.disabled_reason is
  'Why an operator disabled it; null when the service did, because deliveries failed for three days.';

create table app.webhook_events (
  id uuid not null primary key,
  organisation_id uuid not null,
  type app.webhook_event_type not null,
  message_id uuid,
  body text not null,
  occurred_at timestamptz not null
) partition by range (id);
create index webhook_events_organisation_id on app.webhook_events (organisation_id, id);
comment on table app.webhook_events is
  'Events that an endpoint had chosen, written in the transaction of the change that they report, and kept for replay.';
comment on column app.webhook_events.message_id is 'null for a test event, which only one endpoint gets.';
comment on column app.webhook_events.body is 'The JSON text that is sent, identical at every attempt.';

create table app.webhook_deliveries (
  endpoint_id uuid not null,
  event_id uuid not null,
  attempts smallint not null default 0,
  due_at timestamptz not null,
  primary key (endpoint_id, event_id)
);
create index webhook_deliveries_due_at on app.webhook_deliveries (endpoint_id, due_at);
comment on table app.webhook_deliveries is
  'Deliveries that are not finished. A row is deleted once its delivery succeeded, has no attempts left, or its endpoint was disabled.';
comment on column app.webhook_deliveries.attempts is 'Failed attempts since the event or its last replay.';
comment on column app.webhook_deliveries.due_at is 'When the next attempt is made.';

create table app.webhook_attempts (
  endpoint_id uuid not null,
  event_id uuid not null,
  attempt smallint not null,
  status smallint,
  error text
    constraint webhook_attempts_error_length check (length(error) <= 500),
  response text
    constraint webhook_attempts_response_length check (length(response) <= 1000),
  duration_ms integer not null,
  started_at timestamptz not null,
  primary key (endpoint_id, event_id, started_at)
) partition by range (event_id);
comment on table app.webhook_attempts is 'Each attempt to deliver an event to an endpoint.';
comment on column app.webhook_attempts.attempt is 'Its number in the retry schedule, from 1. A replay starts a new schedule.';
comment on column app.webhook_attempts.status is 'HTTP status; null when there was no response.';
comment on column app.webhook_attempts.error is 'Why it failed; null when it succeeded.';
comment on column app.webhook_attempts.response is 'The first characters of the response body; null when there was no response.';
