-- The rows counted refused recipients as failures of the provider.
delete from app.provider_health;

alter table app.provider_health
  alter column failing_since drop not null,
  add column first_failed_at timestamptz not null default now(),
  add column last_failed_at timestamptz not null default now(),
  add column failures integer not null default 1;

comment on table app.provider_health is
  'A row for each provider that failed and has taken or refused no message since.';
comment on column app.provider_health.failing_since is
  'When its failures began; null while they are too few to say that it fails (core.record_provider_health).';
comment on column app.provider_health.failures is 'How many failures there were since first_failed_at.';
