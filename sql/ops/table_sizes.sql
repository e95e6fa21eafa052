create view ops.table_sizes as
select t.name, t.rows, t.bytes, t.bytes - b.bytes as grown_bytes, b.day as grown_since
from core.table_sizes() t
left join lateral (
  select s.day, s.bytes
  from app.table_sizes s
  where s.name = t.name and s.day >= (core.now() at time zone 'UTC')::date - 31
  order by s.day
  limit 1
) b on true;

comment on view ops.table_sizes is
  'Sizes of tables, with their growth in 31 days. Sizes include indexes, and partitions count towards their table. A scheduled task records the sizes every night.';

comment on column ops.table_sizes.name is 'The table with its schema.';
comment on column ops.table_sizes.rows is 'Number of rows, estimated by Postgres.';
comment on column ops.table_sizes.bytes is 'Size on disk with indexes, in bytes; pg_size_pretty(bytes) makes it readable.';
comment on column ops.table_sizes.grown_bytes is
  'Growth since grown_since in bytes, negative if the table shrank; null before the first recorded size.';
comment on column ops.table_sizes.grown_since is
  'The first UTC day of the last 31 days with a recorded size; null if there is none.';
