create view ops.processes as
select p.pool_id as pool, p.roles, p.host, p.pid, p.started_at, p.heartbeat_at,
  core.is_alive(p) as is_alive,
  p.version, p.clock_offset, p.synchronous_commit
from app.processes p;

comment on view ops.processes is
  'Running processes, with their roles and heartbeats. A process has a row for each of its worker pools: a worker has one each for email, SMS, webhooks and maintenance (domain checks and other calls to the provider). A row is removed a few seconds after its process ends.';

comment on column ops.processes.pool is 'The ID of the worker pool; jobs that it runs are locked by this ID.';
comment on column ops.processes.roles is 'One or more of api, worker and clock.';
comment on column ops.processes.host is 'The host name of the machine.';
comment on column ops.processes.pid is 'The process ID on that machine.';
comment on column ops.processes.started_at is 'When the process started.';
comment on column ops.processes.heartbeat_at is 'When the last heartbeat arrived.';
comment on column ops.processes.is_alive is 'Whether the process holds its lock; without it the process is gone. A standby does not know the lock: there, whether the last heartbeat is at most 30 s old.';
comment on column ops.processes.version is 'The version of Postgram that the process runs; null if it does not report one.';
comment on column ops.processes.clock_offset is
  'How far the machine''s clock is ahead of the database''s, less the time that the heartbeat took to arrive; negative if behind, at most a day.';
comment on column ops.processes.synchronous_commit is 'The setting synchronous_commit of its connections.';
