create function api.record_table_sizes()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with today as (
    select (core.now() at time zone 'UTC')::date as day
  ),
  forgotten as (
    delete from app.table_sizes s using today d where s.day < d.day - 400
  ),
  recorded as (
    insert into app.table_sizes (day, name, bytes, rows)
    select d.day, t.name, t.bytes, t.rows
    from core.table_sizes() t, today d
    -- A partition that is being dropped has no size.
    where t.bytes is not null
    order by t.name
    on conflict (day, name) do update set bytes = excluded.bytes, rows = excluded.rows
    returning 1
  )
  select count(*)::integer from recorded
$$;

comment on function api.record_table_sizes is
  'Record the size of each table for this day, and delete sizes older than 400 days. Returns the number of tables.';
