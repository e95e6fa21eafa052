create function core.other_cells()
returns table (
  number smallint, letter text, name text, joined_at timestamptz, heartbeat_at timestamptz, is_replicating boolean,
  errors bigint
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select c.number, c.letter, c.name, c.joined_at, h.heartbeat_at,
    coalesce(s.subenabled, false) and w.pid is not null,
    coalesce(e.apply_error_count + e.sync_error_count, 0)
  from app.cells c
  left join app.cell_heartbeats h on h.cell = c.number
  left join pg_subscription s on s.subname = c.subscription
    and s.subdbid = (select d.oid from pg_database d where d.datname = current_database())
  left join pg_stat_subscription w on w.subid = s.oid and w.relid is null
  left join pg_stat_subscription_stats e on e.subid = s.oid
$$;

comment on function core.other_cells is
  'Returns the cells that this one has joined, and the state of the subscription to the lists of each.';
