create function core.remove_global_hashes(hashes bytea[], reason app.suppression_hash_reason)
returns void
language plpgsql volatile
as $$
declare
  v_cell smallint := core.cell_number();
begin
  -- Rows of other cells stay, so this cell keeps a newer one that removes them.
  insert into app.global_suppression_hashes as g (sha256, reason, cell, erased_at, removed_at)
  select n.sha256, n.reason, v_cell, max(n.erased_at),
    greatest(core.now(), max(coalesce(n.removed_at, n.erased_at)) + interval '1 microsecond')
  from app.global_suppression_hashes n
  where n.sha256 = any (hashes) and n.reason = remove_global_hashes.reason
  group by n.sha256, n.reason
  having bool_or(n.cell <> v_cell and n.removed_at is null)
  on conflict on constraint global_suppression_hashes_pkey do update set removed_at = excluded.removed_at;
  delete from app.global_suppression_hashes g
  where g.sha256 = any (hashes) and g.reason = remove_global_hashes.reason and g.cell = v_cell
    and g.removed_at is null;
end
$$;

comment on function core.remove_global_hashes is
  'Remove suppressions of erased people that apply to all organisations, in all cells.';
