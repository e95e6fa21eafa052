create function core.division_problem()
returns text
language sql stable
as $$
  select 'The cell is being divided: run ops.divide() or ops.end_division().'
  from app.division
$$;

comment on function core.division_problem is
  'Returns why no process may start on this database; null unless the cell is being divided.';
