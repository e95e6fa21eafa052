-- As the owner, because views of ops ask it: what a view calls runs as whoever reads the view.
create function core.has_process(role text)
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from app.processes p
    where has_process.role = any (p.roles) and core.lock_holder(p.pool_id) is not null
  )
$$;

comment on function core.has_process is 'Whether a process with that role (api, worker or clock) is alive.';
