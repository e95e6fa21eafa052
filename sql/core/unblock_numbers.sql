create function core.unblock_numbers(phones text[])
returns void
language plpgsql volatile
as $$
declare
  v_cell smallint := core.cell_number();
begin
  perform from app.blocked_numbers b
  where b.phone = any (phones) and b.cell = v_cell
  order by b.phone
  for update;
  -- Rows of other cells stay, so this cell keeps a newer one that removes them.
  insert into app.blocked_numbers as b (phone, cell, created_at, removed_at)
  select n.phone, v_cell, max(n.created_at),
    greatest(core.now(), max(coalesce(n.removed_at, n.created_at)) + interval '1 microsecond')
  from app.blocked_numbers n
  where n.phone = any (phones)
  group by n.phone
  having bool_or(n.cell <> v_cell and n.removed_at is null)
  on conflict on constraint blocked_numbers_pkey do update set removed_at = excluded.removed_at, note = '';
  delete from app.blocked_numbers b
  where b.phone = any (phones) and b.cell = v_cell and b.removed_at is null;
end
$$;

comment on function core.unblock_numbers is
  'Remove numbers from the opt-out registry, in all cells.';
