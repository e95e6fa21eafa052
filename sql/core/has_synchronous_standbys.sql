-- As the owner, because ops.checks asks it. Without pg_read_all_stats the owner sees standbys but not whether
-- they are synchronous, and each counts.
create function core.has_synchronous_standbys()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with setting as (
    select current_setting('synchronous_standby_names') as names
  )
  select s.names = '' or
    (select count(*) from pg_stat_replication r where coalesce(r.sync_state, 'sync') in ('sync', 'quorum'))
    -- "FIRST 2 (a, b)", "ANY 2 (a, b)" or "2 (a, b)"; a mere list asks for one.
    >= coalesce(substring(s.names from '(?i)^\s*(?:(?:first|any)\s+)?(\d+)\s*\(')::integer, 1)
  from setting s
$$;

comment on function core.has_synchronous_standbys is
  'Whether as many synchronous standbys are connected as synchronous_standby_names asks for.';
