create function api.delete_old_early_receipts()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.early_receipts e
    where e.id in (
      select o.id
      from app.early_receipts o
      where o.received_at < core.now() - interval '1 day'
      order by o.received_at
      limit 20000
    )
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.delete_old_early_receipts is
  'Delete receipts older than a day whose part was never recorded, such as those of messages that another system sent through the same account. Returns their number, at most 20,000.';
