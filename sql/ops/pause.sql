create function ops.pause(organisation text, reason text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.set_state('pause', organisation, reason)
$$;

comment on function ops.pause is
  'Pause an organisation: live sends get 423 org_paused, what is queued waits, reads and test keys work. A suspended one is paused once it is reinstated.';
