create view ops.processes as
select p.pool_id as pool, p.roles, p.host, p.pid, p.started_at, p.beat_at,
  core.lock_holder(p.pool_id) is not null as is_alive
from app.processes p;

comment on view ops.processes is 'Running processes and their roles, by the pools whose names their jobs carry: a worker has one for SMS and one for webhooks beside that for all else. One that is gone is swept within seconds.';
