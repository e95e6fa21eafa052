create function api.dashboard_erase_person(session text, person text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_erase_person.session, is_fresh => true);
  return ops.erase_person(dashboard_erase_person.person);
end
$$;

comment on function api.dashboard_erase_person is
  'Erase a person as ops.erase_person does, for an operator with a fresh sign-in. Returns the number of rows. Refuses as core.operator_of does.';
