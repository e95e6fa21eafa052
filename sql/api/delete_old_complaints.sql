create function api.delete_old_complaints()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.complaints c
    where c.received_at < core.now() - interval '7 days'
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.delete_old_complaints is
  'Delete complaints older than a week, which no rate counts. Returns their number.';
