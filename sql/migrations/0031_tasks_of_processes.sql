-- Which jobs the running processes take, so that no job is added that all of them leave to newer versions.

alter table app.processes add column tasks text[] not null default '{}';
comment on column app.processes.tasks is
  'The tasks whose jobs its worker pool takes; empty for a process without a worker, and before this column existed.';
