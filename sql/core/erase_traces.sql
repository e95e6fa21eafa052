create function core.erase_traces(person text)
returns integer
language sql volatile
as $$
  with receipt as (
    delete from app.early_receipts e where e.receipt ->> 'phone' = person returning 1
  ),
  report as (
    update app.sandbox_reports s
    set reports = (
      select jsonb_agg(array(
        select r.report
        from jsonb_array_elements(m.reports) with ordinality as r (report, place)
        where not core.names_person(r.report::text, person)
        order by r.place))
      from jsonb_array_elements(s.reports) as m (reports))
    where core.names_person(s.reports::text, person)
    returning 1
  ),
  forwarded as (
    delete from app.forwarded_receipts f where core.names_person(f.content::text, person) returning 1
  ),
  -- The provider may go on suppressing an erased person.
  removal as (
    delete from app.suppression_removals s where s.email = person returning 1
  )
  select ((select count(*) from receipt) + (select count(*) from report) + (select count(*) from removal)
    + (select count(*) from forwarded))::integer
$$;

comment on function core.erase_traces is
  'Delete what is about a person, by an address in lower case or a number, and not about a message: early and forwarded receipts, reports that the sandbox has not made yet, and removals from the provider''s lists. Returns how many rows.';
