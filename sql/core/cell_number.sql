create function core.cell_number()
returns smallint
language sql stable
as $$
  select c.number from app.cell c
$$;

comment on function core.cell_number is 'Returns the number of this cell.';
