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
  'Sizes of tables, and how much they grew in 31 days. With indexes; partitions count to their table. The clock records the sizes every night.';

comment on column ops.table_sizes.name is 'The table with its schema.';
comment on column ops.table_sizes.rows is 'How many rows it has, as Postgres estimates.';
comment on column ops.table_sizes.bytes is 'Its size on disk with indexes; pg_size_pretty(bytes) is easier to read.';
comment on column ops.table_sizes.grown_bytes is 'How much larger it is than on grown_since, negative if it shrank; null until a size is recorded.';
comment on column ops.table_sizes.grown_since is 'The first UTC day of the last 31 that has a recorded size; null if none has.';
