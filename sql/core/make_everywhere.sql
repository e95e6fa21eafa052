create function core.make_everywhere()
returns void
language plpgsql volatile
as $$
declare
  -- No view that grows with messages: a query over all cells fetches its rows.
  c_views constant text[] := array['api_keys', 'bounce_reasons', 'cells', 'checks', 'clock', 'complaint_rates',
    'daily_volume', 'domains', 'domains_at_risk', 'failing_endpoints', 'failing_providers', 'latencies', 'members',
    'organisations', 'outcome_rates', 'plans', 'processes', 'queue', 'retention', 'senders', 'sms_settings',
    'statements', 'stuck_messages', 'table_sizes'];
  v_cells smallint[];
  v_cell smallint;
  v_view record;
  v_query text;
begin
  perform core.drop_everywhere();
  v_cells := array(
    select c.number from app.cells c
    join pg_foreign_server s on s.srvname = format('postgram_cell_%s', c.number)
    -- Another login may have created the server; a migrate must not fail for reports.
    where has_server_privilege(s.oid, 'usage')
    order by c.number);
  if v_cells = '{}' then
    return;
  end if;

  create schema everywhere;
  comment on schema everywhere is 'Views of ops over all cells; recreated by join, leave and migrate.';
  foreach v_cell in array v_cells loop
    execute format('create schema cell_%s', v_cell);
    execute format('comment on schema cell_%1$s is %2$L', v_cell,
      format('Views of ops of cell %s, which everywhere reads; recreated by join, leave and migrate.', v_cell));
  end loop;

  for v_view in
    select c.relname as name,
      string_agg(format('v.%I', a.attname), ', ' order by a.attnum) as columns,
      string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum) as definitions
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'ops'::regnamespace and c.relname = any (c_views)
    group by c.relname
  loop
    v_query := format('select %s::smallint as cell, %s from ops.%I v', core.cell_number(), v_view.columns, v_view.name);
    foreach v_cell in array v_cells loop
      execute format($sql$create foreign table cell_%1$s.%2$I (%3$s) server postgram_cell_%1$s options (schema_name 'ops')$sql$,
        v_cell, v_view.name, v_view.definitions);
      v_query := v_query || format(' union all select %1$s::smallint, %2$s from cell_%1$s.%3$I v',
        v_cell, v_view.columns, v_view.name);
    end loop;
    execute format('create view everywhere.%I as %s', v_view.name, v_query);
    execute format('comment on view everywhere.%I is %L', v_view.name,
      format('ops.%s of all cells; the condition "where cell <> 2" reads without cell 2.', v_view.name));
  end loop;
  grant usage on schema everywhere to postgram_operator, postgram_report;
  grant select on all tables in schema everywhere to postgram_operator, postgram_report;
end
$$;

comment on function core.make_everywhere is
  'Create schema everywhere with a view over all cells for each of several views of ops, and for each other cell a schema with their foreign tables. Without foreign servers of other cells it creates nothing. Connects to no cell.';
