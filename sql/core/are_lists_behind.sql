create function core.are_lists_behind()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from app.cells c
    left join app.cell_heartbeats h on h.cell = c.number
    where greatest(h.heartbeat_at, c.joined_at) < now() - interval '5 minutes')
$$;

comment on function core.are_lists_behind is
  'Returns whether the lists of another cell are more than 5 minutes behind. Then marketing waits, because people may have bounced or opted out there.';
