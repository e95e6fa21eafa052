create function api.leave(pool_id text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from app.processes p where p.pool_id = leave.pool_id;
  perform graphile_worker.force_unlock_workers(array[leave.pool_id]);
  return pg_advisory_unlock(core.pool_lock(leave.pool_id));
end
$$;

comment on function api.leave is
  'Remove a stopping process from the list and release the jobs that it still holds.';
