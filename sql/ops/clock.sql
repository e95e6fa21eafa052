create view ops.clock as
select t.name as task, t.schedule, last.started_at as last_run, last.duration_ms, last.rows, last.error,
  ok.started_at as last_success
from app.scheduled_tasks t
left join lateral (
  select r.* from app.task_runs r where r.task = t.name order by r.id desc limit 1
) last on true
left join lateral (
  select r.started_at from app.task_runs r where r.task = t.name and r.error is null order by r.id desc limit 1
) ok on true;

comment on view ops.clock is
  'Scheduled tasks, with their last run and its error. A task without a run waits for its first scheduled time, or no clock is running (ops.checks).';

comment on column ops.clock.task is 'The name of the task.';
comment on column ops.clock.schedule is 'The schedule, in cron format and UTC.';
comment on column ops.clock.last_run is 'When the last run started; null before the first run.';
comment on column ops.clock.duration_ms is 'How long the last run took, in milliseconds.';
comment on column ops.clock.rows is 'Number of rows that the last run processed.';
comment on column ops.clock.error is 'The error of the last run; null if it succeeded.';
comment on column ops.clock.last_success is 'When the last successful run started.';
