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
  ),
  -- Another cell that is behind has yet to take them.
  forwarded as (
    delete from app.forwarded_receipts f
    where f.cell = core.cell_number() and not core.are_lists_behind() and f.id in (
      select o.id
      from app.forwarded_receipts o
      where o.cell = core.cell_number() and o.received_at < core.now() - interval '1 day'
      order by o.received_at
      limit 20000
    )
    returning 1
  )
  select ((select count(*) from forgotten) + (select count(*) from forwarded))::integer
$$;

comment on function api.delete_old_early_receipts is
  'Delete receipts older than a day whose part was never recorded, such as those of messages that another system sent through the same account. And delete what this cell gave to other cells more than a day ago. Returns their number, at most 20,000 of each.';
