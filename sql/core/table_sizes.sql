create function core.table_sizes()
returns table (name text, bytes bigint, rows bigint)
language sql stable
as $$
  select format('%I.%I', n.nspname, t.relname), sum(pg_catalog.pg_total_relation_size(c.oid))::bigint,
    sum(greatest(c.reltuples, 0))::bigint
  from pg_catalog.pg_class c
  join pg_catalog.pg_class t on t.oid = coalesce(pg_catalog.pg_partition_root(c.oid), c.oid)
  join pg_catalog.pg_namespace n on n.oid = t.relnamespace
  where c.relkind = 'r' and n.nspname in ('app', 'graphile_worker', 'pgboss')
  group by n.nspname, t.relname
$$;

comment on function core.table_sizes is
  'Returns the size of each table in bytes, with indexes and TOAST, and its rows as estimated by Postgres. Partitions count towards their table.';
