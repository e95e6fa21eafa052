create function core.erase_traces(person text)
returns integer
language plpgsql volatile
as $$
declare
  v_rows integer;
  v_total integer := 0;
begin
  delete from app.early_receipts e where e.receipt ->> 'phone' = person;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  -- A provider that still suppresses somebody who is erased does right.
  delete from app.suppression_removals s where s.email = person;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;
  return v_total;
end
$$;

comment on function core.erase_traces is
  'Remove what is about a person alone, by an address in lower case or a number, and not about a message: receipts that came early, jobs at providers. Returns how many rows.';
