create function core.drop_everywhere()
returns void
language plpgsql volatile
as $$
declare
  v_cell smallint;
begin
  for v_cell in select c.number from app.cells c loop
    execute format('drop schema if exists cell_%s cascade', v_cell);
  end loop;
  -- Without other cells a schema of this name is not ours.
  if found then
    drop schema if exists everywhere cascade;
  end if;
end
$$;

comment on function core.drop_everywhere is
  'Drop what core.make_everywhere creates. Must run before migrations, because the foreign tables use types of app.';
