create function api.check_space()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
set work_mem = '64kB'
set temp_tablespaces = ''
as $$
  -- More than work_mem, so Postgres writes a temporary file. That needs disk space that no table holds yet.
  with filling as materialized (
    select repeat(md5(n::text), 250) as filling from generate_series(1, 1024) n
  )
  select sum(length(f.filling))::integer from filling f
$$;

comment on function api.check_space is
  'Write 8 MB to a temporary file, which fails with disk_full if the database has no room for more data. Returns the number of bytes written.';
