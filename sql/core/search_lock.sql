create function core.search_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram search', 0)
$$;

comment on function core.search_lock is
  'The advisory lock under which the index of the search changes. Taken after the lock of the reports.';
