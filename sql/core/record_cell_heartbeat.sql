create function core.record_cell_heartbeat()
returns void
language sql volatile
as $$
  -- Without other cells there is no row. Several clocks together write it every 4 s.
  update app.cell_heartbeats h
  set heartbeat_at = now()
  where h.cell = core.cell_number() and h.heartbeat_at < now() - interval '4 seconds'
$$;

comment on function core.record_cell_heartbeat is
  'Record a heartbeat of this cell, by which other cells see how far their copies of its lists are behind.';
