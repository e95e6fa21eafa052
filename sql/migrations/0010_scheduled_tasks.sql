-- Scheduled tasks and their runs.

create table app.scheduled_tasks (
  name text primary key
    constraint scheduled_tasks_name_length check (length(name) between 1 and 100),
  schedule text not null
    constraint scheduled_tasks_schedule_length check (length(schedule) between 9 and 100)
);
comment on table app.scheduled_tasks is 'The scheduled tasks of the clock that started last.';
comment on column app.scheduled_tasks.schedule is 'A cron expression, in UTC.';

create table app.task_runs (
  id bigint generated always as identity primary key,
  task text not null
    constraint task_runs_task_length check (length(task) between 1 and 100),
  rows integer,
  error text
    constraint task_runs_error_length check (length(error) <= 500),
  started_at timestamptz not null,
  duration_ms integer not null,
  constraint task_runs_succeed_or_fail check ((rows is null) = (error is not null))
);
create index task_runs_task on app.task_runs (task, id);
create index task_runs_started_at on app.task_runs (started_at);
comment on table app.task_runs is 'Runs of scheduled tasks in the last week.';
comment on column app.task_runs.rows is 'How many rows, messages, domains and so on the run handled; null when it failed.';
comment on column app.task_runs.error is 'Why it failed; null when it succeeded.';
