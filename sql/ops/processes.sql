create view ops.processes as
select p.pool_id as pool, p.roles, p.host, p.pid, p.started_at, p.heartbeat_at,
  core.lock_holder(p.pool_id) is not null as is_alive,
  p.version, p.clock_offset, p.synchronous_commit
from app.processes p;

comment on view ops.processes is
  'Running processes, their roles and heartbeats. A process has a row for each of its pools, under the name that their jobs carry: a worker has one for email, one for SMS, one for webhooks and one for upkeep (checks of domains and other calls to the provider). A pool that is gone is removed within seconds.';

comment on column ops.processes.pool is 'The name that its jobs carry.';
comment on column ops.processes.roles is 'api, worker and clock, or some of them.';
comment on column ops.processes.host is 'The machine it runs on.';
comment on column ops.processes.pid is 'Its process id there.';
comment on column ops.processes.started_at is 'When it was started.';
comment on column ops.processes.heartbeat_at is 'When it last said that it runs.';
comment on column ops.processes.is_alive is 'Whether it holds the lock of its pool; one that does not is gone.';
comment on column ops.processes.version is 'The version that it runs.';
comment on column ops.processes.clock_offset is
  'How far the clock of its machine is ahead of the database''s, less the time that its heartbeat took to arrive; negative when it is behind, at most a day.';
comment on column ops.processes.synchronous_commit is 'The setting of this name on its connections.';
