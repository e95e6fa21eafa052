create function ops.suspend(organisation text, reason text)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.release_held(core.set_state('suspend', organisation, reason))
$$;

comment on function ops.suspend is
  'Suspend an organisation: refuse all requests and reject queued messages. Requests get 403 org_suspended. ops.reinstate ends the suspension. Returns the number of held messages that are rejected.';
