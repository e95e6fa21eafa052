create function ops.suspend(organisation text, reason text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return core.release_held(core.set_state('suspend', organisation, reason));
end
$$;

comment on function ops.suspend is
  'Suspend an organisation: refuse every request, reject its queue. Requests get 403 org_suspended. Returns how many held messages are affected.';
