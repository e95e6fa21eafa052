create function core.make_partition(parent text, bounds_from text, bounds_to text, name text)
returns integer
language plpgsql volatile
as $$
begin
  if to_regclass(format('app.%I', name)) is not null then
    return 0;
  end if;
  -- Created first and attached afterwards: "create table … partition of" would block senders.
  execute format('create table app.%I (like app.%I including all)', name, parent);
  if parent = 'messages' then
    -- Space on each page for a second version of each message: a transaction updates all messages of a page, and
    -- Postgres reuses the space of their first versions only after it. Otherwise the updates are not heap-only.
    execute format('alter table app.%I set (fillfactor = 48)', name);
  end if;
  execute format('alter table app.%I attach partition app.%I for values from (%L) to (%L)', parent, name, bounds_from, bounds_to);
  return 1;
end
$$;

comment on function core.make_partition is
  'Create a partition of a table unless it exists. Returns the number of partitions created, 0 or 1.';
