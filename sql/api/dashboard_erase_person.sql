create function api.dashboard_erase_person(session text, person text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_user app.users := core.operator_of(dashboard_erase_person.session, is_fresh => true);
  v_person text := core.check_person(dashboard_erase_person.person);
begin
  -- The condition keeps a second request from waiting for an erasure that is running.
  insert into app.erasures (person, requested_by, requested_at)
  select v_person, v_user.email, core.now()
  where not exists (select from app.erasures e where e.person = v_person)
  on conflict do nothing;
  return (select count(*) from app.erasures e where e.person is not null);
end
$$;

comment on function api.dashboard_erase_person is
  'Request the erasure of a person, for an operator with a fresh sign-in; api.erase_people makes it. Returns the number of requests that wait. Refuses as core.operator_of does.';
