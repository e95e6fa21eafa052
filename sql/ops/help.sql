create view ops.help as
select
  case c.relkind when 'v' then 'view' when 'r' then 'table' end as kind,
  'ops.' || c.relname as name,
  obj_description(c.oid, 'pg_class') as what
from pg_catalog.pg_class c
where c.relnamespace = 'ops'::regnamespace and c.relkind in ('v', 'r')
union all
select
  'function',
  format('ops.%s(%s)', p.proname, pg_get_function_arguments(p.oid)),
  obj_description(p.oid, 'pg_proc')
from pg_catalog.pg_proc p
where p.pronamespace = 'ops'::regnamespace
order by 1, 2;

comment on view ops.help is 'This manual: every function, view and table of the operator''s surface, and what it does.';

comment on column ops.help.kind is 'function, view or table.';
comment on column ops.help.name is 'How to call it; of a function with its arguments and what they are by default.';
comment on column ops.help.what is 'What it does.';
