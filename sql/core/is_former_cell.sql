create function core.is_former_cell(number integer)
returns boolean
language sql stable
as $$
  select exists (select from app.hard_bounces b where b.cell = is_former_cell.number)
    or exists (select from app.blocked_numbers b where b.cell = is_former_cell.number)
    or exists (select from app.global_suppression_hashes g where g.cell = is_former_cell.number)
$$;

comment on function core.is_former_cell is
  'Returns whether the lists hold rows of a cell with this number.';
