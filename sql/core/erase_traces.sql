create function core.erase_traces(person text)
returns integer
language sql volatile
as $$
  with receipt as (
    delete from app.early_receipts e where e.receipt ->> 'phone' = person returning 1
  ),
  -- The provider may go on suppressing an erased person.
  removal as (
    delete from app.suppression_removals s where s.email = person returning 1
  )
  select ((select count(*) from receipt) + (select count(*) from removal))::integer
$$;

comment on function core.erase_traces is
  'Delete what is about a person, by an address in lower case or a number, and not about a message: early receipts, and removals from the provider''s lists. Returns how many rows.';
