create function api.delete_old_task_runs()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.task_runs r
    where r.started_at < now() - interval '7 days'
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.delete_old_task_runs is
  'Delete runs of scheduled tasks older than a week. Returns their number.';
