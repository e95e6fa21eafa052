create function api.erase_people()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request app.erasures;
begin
  select e.* into v_request
  from app.erasures e
  where e.person is not null
  order by e.tried_at nulls first, e.id
  limit 1
  for update skip locked;
  if not found then
    return 0;
  end if;
  -- The audit names the operator.
  perform set_config('postgram.user', v_request.requested_by, true);
  perform core.erase_person(v_request.person);
  return 1;
exception when raise_exception then
  update app.erasures e set tried_at = core.now(), error = sqlerrm where e.id = v_request.id;
  return 0;
end
$$;

comment on function api.erase_people is
  'Erase the person of one requested erasure. Returns 1, or 0 if none waits or it is refused; then it is tried again in the next run, after those that were not tried.';
