create function core.erase_terms(person text, ids uuid[], others core.message_term[])
returns integer
language plpgsql volatile
as $$
declare
  v_rows integer;
begin
  perform pg_advisory_xact_lock(core.search_lock());
  delete from app.message_terms t
  where core.names_person(t.term, person)
    -- As the address of a sender it stays in the messages, too.
    and not starts_with(t.term, 'from:');
  get diagnostics v_rows = row_count;
  perform core.add_terms(array(
    select distinct row(m.organisation_id, 'tag:' || g.tag, m.id, null)::core.message_term
    from app.messages m
    cross join unnest(m.tags) g (tag)
    where m.id = any (ids) and strpos(g.tag, '(erased)') > 0));
  perform core.add_terms(others);
  return v_rows;
end
$$;

comment on function core.erase_terms is
  'Delete a person (address in lower case, or number) from the index of the search, and index the redacted tags of these messages, which must be locked, and the terms of their other recipients. Returns how many rows.';
