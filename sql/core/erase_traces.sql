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

  -- The provider may go on suppressing an erased person.
  delete from app.suppression_removals s where s.email = person;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;
  return v_total;
end
$$;

comment on function core.erase_traces is
  'Delete what is about a person, by an address in lower case or a number, and not about a message: early receipts, and removals from the provider''s lists. Returns how many rows.';
