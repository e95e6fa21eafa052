create function api.deregister(pool_id text)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from app.processes p where p.pool_id = deregister.pool_id;
  select graphile_worker.force_unlock_workers(array[deregister.pool_id]);
  select pg_advisory_unlock(core.pool_lock(deregister.pool_id))
$$;

comment on function api.deregister is
  'Remove a stopping process from the list and release the jobs that it still holds.';
