create function core.block_numbers(phones text[], note text)
returns integer
language plpgsql volatile
as $$
declare
  v_rows integer;
begin
  insert into app.blocked_numbers as b (phone, cell, note, created_at)
  select p.phone, core.cell_number(), block_numbers.note,
    -- Newer than the row of a cell that unblocked the number.
    greatest(core.now(), (
      select max(n.removed_at) + interval '1 microsecond' from app.blocked_numbers n where n.phone = p.phone))
  from (select distinct u.phone from unnest(phones) as u (phone)) p
  where not exists (select from core.blocked_numbers_of(p.phone))
    and not exists (select from core.suppressions_by_hash(p.phone) a where a.reason = 'registry')
  order by p.phone
  on conflict on constraint blocked_numbers_pkey do update
  set note = excluded.note, created_at = greatest(excluded.created_at, b.removed_at + interval '1 microsecond'),
    removed_at = null;
  get diagnostics v_rows = row_count;
  return v_rows;
end
$$;

comment on function core.block_numbers is
  'Block marketing to numbers that are not blocked yet, by any cell. Returns how many.';
