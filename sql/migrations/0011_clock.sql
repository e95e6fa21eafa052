-- What the clock does, and what came of it.

create table app.scheduled_tasks (
  name text primary key
    constraint clock_tasks_name_length check (length(name) between 1 and 100),
  schedule text not null
    constraint clock_tasks_schedule_length check (length(schedule) between 9 and 100)
);
comment on table app.scheduled_tasks is 'What the clock that started last runs, and when: cron, in UTC.';

create table app.task_runs (
  id bigint generated always as identity primary key,
  task text not null
    constraint clock_runs_task_length check (length(task) between 1 and 100),
  started_at timestamptz not null,
  duration_ms integer not null,
  rows integer,
  error text
    constraint clock_runs_error_length check (length(error) <= 500),
  constraint clock_runs_end_one_way check ((rows is null) = (error is not null))
);
create index clock_runs_task on app.task_runs (task, id);
create index clock_runs_started_at on app.task_runs (started_at);
comment on table app.task_runs is 'What the clock ran in the last week.';
comment on column app.task_runs.rows is 'How many rows it touched, or messages, domains and so on; null when it failed.';
comment on column app.task_runs.error is 'Why it failed; null when it did not.';
