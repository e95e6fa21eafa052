-- Webhooks: who wants to hear of what, the events, and what became of their deliveries. The events
-- and the attempts are partitioned by range on the UUIDv7 of the event, like messages.

create type app.webhook_event_type as enum (
  'email.sent', 'email.delivered', 'email.bounced', 'email.complained', 'email.failed',
  'sms.sent', 'sms.delivered', 'sms.failed', 'sms.opted_out'
);

alter type app.notice_kind add value 'webhook_failing';
alter type app.notice_kind add value 'webhook_disabled';

create table app.webhook_settings (
  is_only_row boolean primary key default true
    constraint webhook_settings_one_row check (is_only_row),
  allows_private boolean not null default false
);
insert into app.webhook_settings default values;
comment on table app.webhook_settings is 'What the service was started with that psql has to know as well.';
comment on column app.webhook_settings.allows_private is 'WEBHOOK_ALLOW_PRIVATE of the process that started last.';

create table app.webhook_endpoints (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  url text not null
    constraint webhook_endpoints_url_length check (length(url) between 1 and 2000),
  event_types app.webhook_event_type[] not null
    constraint webhook_endpoints_want_something check (cardinality(event_types) > 0),
  secret text not null,
  secret_sealed_by text,
  old_secret text,
  old_secret_sealed_by text,
  old_secret_until timestamptz,
  created_at timestamptz not null,
  failing_since timestamptz,
  failed_at timestamptz,
  last_error text,
  warned_at timestamptz,
  disabled_at timestamptz,
  disabled_reason text,
  held_by bigint,
  constraint webhook_endpoints_old_secret_was_sealed check (old_secret is not null or old_secret_sealed_by is null),
  constraint webhook_endpoints_old_secret_ends check ((old_secret is null) = (old_secret_until is null)),
  constraint webhook_endpoints_disabled_why check ((disabled_at is null) = (disabled_reason is null))
) with (fillfactor = 50);
create index webhook_endpoints_organisation_id on app.webhook_endpoints (organisation_id);
comment on table app.webhook_endpoints is 'Where organisations want their events delivered.';
comment on column app.webhook_endpoints.secret is
  'Signs deliveries. Plain text from core.make_secret until the service seals it with SECRET_KEY (AES-256-GCM), at the first delivery or within a minute.';
comment on column app.webhook_endpoints.secret_sealed_by is 'Identifier of the SECRET_KEY that sealed it; null while it is plain text.';
comment on column app.webhook_endpoints.old_secret is 'The secret before the last rotation, which signs as well for 24 hours.';
comment on column app.webhook_endpoints.old_secret_sealed_by is 'As secret_sealed_by.';
comment on column app.webhook_endpoints.failing_since is 'The first failure since the last delivery that succeeded; null while they do.';
comment on column app.webhook_endpoints.failed_at is 'The last failure, to the minute.';
comment on column app.webhook_endpoints.last_error is 'What the last attempt that failed came to; null while they succeed.';
comment on column app.webhook_endpoints.disabled_reason is 'failing, or what an operator wrote; while disabled, events are kept but not delivered.';
comment on column app.webhook_endpoints.held_by is
  'The graphile-worker job whose turn it is to deliver here. One has it at a time, which bounds what is in flight; it is free once that job is gone or no longer locked.';

create table app.webhook_events (
  id uuid not null primary key,
  organisation_id uuid not null,
  type app.webhook_event_type not null,
  message_id uuid,
  occurred_at timestamptz not null,
  body text not null
) partition by range (id);
create index webhook_events_organisation_id on app.webhook_events (organisation_id, id);
comment on table app.webhook_events is
  'Events that an endpoint had chosen, written in the transaction of the change that they report; kept for replay.';
comment on column app.webhook_events.message_id is 'null for a test event, which goes to the endpoint that it was made for only';
comment on column app.webhook_events.body is 'The JSON text (interface 2.6) that is sent, byte for byte the same at every attempt.';

create table app.webhook_deliveries (
  endpoint_id uuid not null,
  event_id uuid not null,
  due_at timestamptz not null,
  attempts smallint not null default 0,
  primary key (endpoint_id, event_id)
);
create index webhook_deliveries_due_at on app.webhook_deliveries (endpoint_id, due_at);
comment on table app.webhook_deliveries is
  'What is still to be delivered, and when it is tried next. A row goes once its delivery succeeded, ran out of attempts or its endpoint was disabled.';
comment on column app.webhook_deliveries.attempts is 'Those that failed, since the event or its last replay.';

create table app.webhook_attempts (
  endpoint_id uuid not null,
  event_id uuid not null,
  started_at timestamptz not null,
  attempt smallint not null,
  duration_ms integer not null,
  status smallint,
  error text
    constraint webhook_attempts_error_length check (length(error) <= 500),
  answer text
    constraint webhook_attempts_answer_length check (length(answer) <= 1000),
  primary key (endpoint_id, event_id, started_at)
) partition by range (event_id);
comment on table app.webhook_attempts is 'Each attempt to deliver an event to an endpoint.';
comment on column app.webhook_attempts.attempt is 'Its place in the schedule, from 1; a replay begins a schedule anew.';
comment on column app.webhook_attempts.status is 'HTTP status; null when no answer came';
comment on column app.webhook_attempts.error is 'Why it failed; null when it succeeded';
comment on column app.webhook_attempts.answer is 'The first characters of the body that was answered.';
