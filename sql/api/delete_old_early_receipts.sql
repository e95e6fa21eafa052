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
  'Forget receipts for parts that nobody noted within a day, as of messages that others sent by the same account. Answers how many, at most 20 000.';
