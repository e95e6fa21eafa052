-- In bytes: pg_stat_replication.replay_lag keeps its last value while a standby replays nothing. Without
-- pg_read_all_stats the owner sees no positions; then no standby counts as behind.
create function core.has_lagging_standby()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  -- A standby has no position of its own log.
  select case when not pg_is_in_recovery() then exists (
    select
    from pg_stat_replication r
    where r.sync_state in ('sync', 'quorum')
      -- pg_receivewal stores the log and replays nothing.
      and pg_current_wal_flush_lsn() - coalesce(r.replay_lsn, r.flush_lsn) > 64 * 1024 * 1024
  ) else false end
$$;

comment on function core.has_lagging_standby is
  'Returns whether a synchronous standby is more than 64 MB behind in storing or replaying the write-ahead log.';
