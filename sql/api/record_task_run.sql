create function api.record_task_run(task text, duration_ms integer, rows integer default null, error text default null)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into app.task_runs (task, started_at, duration_ms, rows, error)
  select task, now() - make_interval(secs => duration_ms / 1000.0), duration_ms, record_task_run.rows,
    case when record_task_run.rows is null then left(coalesce(nullif(record_task_run.error, ''), 'it failed without a word'), 500) end
$$;

comment on function api.record_task_run is
  'Record a run of a scheduled task that ends now: the number of rows it processed, or its error.';
