create function core.server_timeline()
returns integer
language sql stable
as $$
  -- The control file has the new timeline of a promoted standby only after its next checkpoint.
  select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
$$;

comment on function core.server_timeline is
  'Returns the timeline of the server, which rises when a standby is promoted. Raises an error on a standby.';
