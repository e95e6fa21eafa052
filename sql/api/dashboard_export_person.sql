create function api.dashboard_export_person(session text, person text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_records jsonb;
begin
  perform core.operator_of(dashboard_export_person.session, is_fresh => true);
  select coalesce(jsonb_agg(to_jsonb(p) order by p.at), '[]') into v_records
  from ops.export_person(dashboard_export_person.person) p;
  -- Without the name: the audit is kept when the person is erased.
  perform core.audit('export_person', null, null, null, jsonb_build_object('records', jsonb_array_length(v_records)));
  return v_records;
end
$$;

comment on function api.dashboard_export_person is
  'Returns all records of a person as ops.export_person does, for an operator with a fresh sign-in; the audit has the number of records, not the name. Refuses as core.operator_of does.';
