create type app.notice_kind as enum (
  'org_paused', 'domain_failed', 'domain_not_found', 'webhook_failing', 'webhook_disabled'
);

create table app.notices (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  kind app.notice_kind not null,
  detail jsonb not null,
  attempts smallint not null default 0,
  error_message text,
  created_at timestamptz not null,
  attempt_started_at timestamptz,
  sent_at timestamptz,
  failed_at timestamptz,
  constraint notices_end_once check (sent_at is null or failed_at is null)
);
create index notices_organisation_id on app.notices (organisation_id);
comment on table app.notices is 'Email from the service to the owners of organisations. Each is sent once.';
comment on column app.notices.error_message is 'The provider''s text for the last failed attempt; null when none failed.';
comment on column app.notices.attempt_started_at is
  'Set before the provider is called, cleared when its response is known, as in app.messages.';
comment on column app.notices.failed_at is 'When it failed permanently; null unless it did.';
