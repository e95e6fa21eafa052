-- What running processes share.

create table app.processes (
  pool_id text primary key
    constraint processes_pool_id_length check (length(pool_id) between 8 and 100),
  roles text[] not null,
  host text not null,
  pid integer not null,
  version text not null
    constraint processes_version_length check (length(version) <= 100),
  synchronous_commit text not null,
  clock_offset interval not null,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now()
);
comment on table app.processes is
  'Running processes, by the id of their worker pool, which their jobs carry. Each process holds an advisory lock on it.';
comment on column app.processes.version is 'The version in its package.json.';
comment on column app.processes.synchronous_commit is 'This setting in its session.';
comment on column app.processes.clock_offset is
  'How far its clock is ahead of the database''s, without the time that the heartbeat travelled; at most a day.';

create table app.provider_health (
  provider text primary key,
  failures integer not null default 1,
  last_error text not null,
  first_failed_at timestamptz not null default now(),
  last_failed_at timestamptz not null default now(),
  failing_since timestamptz
);
comment on table app.provider_health is
  'Providers that failed, and have accepted or refused no message since.';
comment on column app.provider_health.failures is 'How many failures there were since first_failed_at.';
comment on column app.provider_health.failing_since is
  'Since when the provider counts as failing; null while there are too few failures (core.record_provider_health).';
