create function ops.export_person(person text, only_organisation text default null)
returns table (kind text, organisation text, id text, at timestamptz, data jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- Its statements read many partitions: to compile them takes longer than to run them.
set jit = off
as $$
declare
  v_person text := core.check_person(person);
  v_organisation uuid := case when only_organisation is not null then core.organisation_id(only_organisation) end;
  -- Once: merged into the query below it would be asked for each row.
  v_ids uuid[] := core.person_messages(v_person, v_organisation);
begin
  return query
  select r.kind, core.encode_id('org', r.organisation_id), r.id, r.at, r.data
  from (
    select x.* from core.export_messages(v_person, v_ids) x
    union all
    select x.* from core.export_suppressions(v_person) x
    union all
    select x.* from core.export_traces(v_person) x
    union all
    select 'staged number', null::uuid, null, null, to_jsonb(s) from ops.staged_numbers s where btrim(s.phone) = v_person
  ) r (kind, organisation_id, id, at, data)
  where v_organisation is null or r.organisation_id = v_organisation
  order by r.at, r.kind, r.id;
end
$$;

comment on function ops.export_person is
  'Export everything about a person, given by address or number. Returns one row for each record, of all organisations or of one: messages with their content, receipts, webhook events, suppressions, consents, and those stored by hash. Other people named in a message are named here, too.';
