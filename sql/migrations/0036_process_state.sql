-- What a process tells of itself with its heartbeat. null in rows of a version before this one.

alter table app.processes add column version text
  constraint processes_version_length check (length(version) <= 100);
alter table app.processes add column clock_offset interval;
alter table app.processes add column synchronous_commit text;
comment on column app.processes.version is 'The version in its package.json.';
comment on column app.processes.clock_offset is
  'How far its clock is ahead of the database''s, less the time that the heartbeat took to arrive; at most a day.';
comment on column app.processes.synchronous_commit is 'This setting in its session.';
