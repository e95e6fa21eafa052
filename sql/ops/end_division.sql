create function ops.end_division(is_old_cell boolean default false)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_division app.division;
begin
  perform core.lock_division();
  select d.* into v_division from app.division d for update;
  if v_division.id is null then
    raise exception 'the cell is not being divided';
  elsif end_division.is_old_cell is null then
    raise exception 'is_old_cell must be true or false';
  elsif core.is_copy(v_division) and not end_division.is_old_cell then
    raise exception 'this database is a copy of the cell, and two cells would send the same messages'
      using hint = 'drop the copy; only if this is the old cell after a failover: select ops.end_division(true)';
  end if;
  delete from app.division;
  perform core.audit('end_division', null, v_division.number::text,
    jsonb_build_object('name', v_division.name, 'begun_at', core.iso(v_division.begun_at)), null);
end
$$;

comment on function ops.end_division is
  'Give up a division before ops.divide: all organisations stay in this cell, and its processes can start. Drop the copy before. is_old_cell confirms that this is the old cell after a failover. Raises an error in a copy.';
