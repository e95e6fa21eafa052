create function api.set_scheduled_tasks(tasks jsonb)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from app.scheduled_tasks c
  where c.name not in (select t.name from jsonb_populate_recordset(null::core.scheduled_task, tasks) as t);
  insert into app.scheduled_tasks (name, schedule)
  select t.name, t.schedule
  from jsonb_populate_recordset(null::core.scheduled_task, tasks) as t
  order by t.name
  on conflict (name) do update set schedule = excluded.schedule
$$;

comment on function api.set_scheduled_tasks is 'Store the scheduled tasks for ops.clock.';
