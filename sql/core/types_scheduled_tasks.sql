create type core.scheduled_task as (
  name text,
  schedule text
);
comment on type core.scheduled_task is
  'Records of api.set_scheduled_tasks(tasks). A scheduled task and its cron expression, in UTC.';
