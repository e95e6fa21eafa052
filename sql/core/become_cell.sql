create function core.become_cell(number smallint, name text)
returns void
language plpgsql volatile
as $$
declare
  v_old smallint := core.cell_number();
  v_link text;
begin
  begin
    perform core.drop_everywhere();
    for v_link in
      select s.srvname from pg_foreign_server s where s.srvname like 'postgram\_cell\_%'
    loop
      execute format('drop server %I cascade', v_link);
    end loop;
    for v_link in
      select s.subname
      from pg_subscription s
      join pg_database d on d.oid = s.subdbid
      where s.subname like 'postgram\_cell\_%' and d.datname = current_database()
    loop
      execute format('alter subscription %I disable', v_link);
      -- The slot belongs to the old cell, which goes on with it.
      execute format('alter subscription %I set (slot_name = none)', v_link);
      execute format('drop subscription %I', v_link);
    end loop;
  exception when insufficient_privilege then
    raise exception 'the owner of this database may not drop %; drop it as a superuser first', v_link
      using hint = format('drop server if exists %1$I cascade; alter subscription %1$I disable; alter subscription %1$I set (slot_name = none); drop subscription %1$I', v_link);
  end;
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
