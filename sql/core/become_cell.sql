create function core.become_cell(number smallint, name text)
returns void
language plpgsql volatile
as $$
declare
  v_old smallint := core.cell_number();
  v_subscription text;
begin
  for v_subscription in
    select s.subname
    from pg_subscription s
    join pg_database d on d.oid = s.subdbid
    where s.subname like 'postgram\_cell\_%' and d.datname = current_database()
  loop
    begin
      execute format('alter subscription %I disable', v_subscription);
      -- The slot belongs to the old cell, which goes on with it.
      execute format('alter subscription %I set (slot_name = none)', v_subscription);
      execute format('drop subscription %I', v_subscription);
    exception when insufficient_privilege then
      raise exception 'the owner of this database may not drop the subscription %; drop it as a superuser first', v_subscription
        using hint = format(
          'alter subscription %1$I disable; alter subscription %1$I set (slot_name = none); drop subscription %1$I', v_subscription);
    end;
  end loop;
  if exists (select from pg_publication p where p.pubname = 'postgram_cell') then
    drop publication postgram_cell;
  end if;
  delete from app.cells;
  delete from app.cell_heartbeats;
  delete from app.forwarded_receipts;
  -- Bounces, blocked numbers and hashes stay as rows of the old cell. They apply here until join replaces them.
  delete from app.name_claims c where c.cell <> v_old;
  update app.name_claims c set cell = become_cell.number;
  update app.cell c set number = become_cell.number, name = become_cell.name;
end
$$;

comment on function core.become_cell is
  'Make this copy of a cell a cell of its own, which has joined no other. The claims to the domain names that it has left keep their age.';
