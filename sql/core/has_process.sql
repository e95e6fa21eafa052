create function core.has_process(role text)
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from app.processes p
    where has_process.role = any (p.roles) and core.is_alive(p)
  )
$$;

comment on function core.has_process is
  'Returns whether a process with this role (api, worker or clock) is alive.';
