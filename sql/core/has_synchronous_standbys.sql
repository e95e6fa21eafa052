-- A standby does not see the others, so it reports no fault.
-- Without pg_read_all_stats the owner sees the standbys but not whether they are synchronous; then each one counts.
create function core.has_synchronous_standbys()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with setting as (
    select current_setting('synchronous_standby_names') as names
  )
  select s.names = '' or pg_is_in_recovery() or
    (select count(*) from pg_stat_replication r where coalesce(r.sync_state, 'sync') in ('sync', 'quorum'))
    -- Formats: "FIRST 2 (a, b)", "ANY 2 (a, b)" and "2 (a, b)"; a plain list requires one.
    >= coalesce(substring(s.names from '(?i)^\s*(?:(?:first|any)\s+)?(\d+)\s*\(')::integer, 1)
  from setting s
$$;

comment on function core.has_synchronous_standbys is
  'Returns whether as many synchronous standbys are connected as synchronous_standby_names requires; true on a standby.';
