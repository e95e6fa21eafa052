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
  'Tasks of the clock, with their last run and its error. Schedules are cron in UTC. Shows how many milliseconds each run took and how many rows it touched. A task that never ran waits for its first time, or no clock is running: select * from ops.checks.';

comment on column ops.clock.task is 'Its name.';
comment on column ops.clock.schedule is 'When it runs: cron, in UTC.';
comment on column ops.clock.last_run is 'When it began to run last; null if it never has.';
comment on column ops.clock.duration_ms is 'How long that took, in milliseconds.';
comment on column ops.clock.rows is 'How many rows it touched.';
comment on column ops.clock.error is 'What it failed with; null when it succeeded.';
comment on column ops.clock.last_success is 'When the last run that succeeded began.';
