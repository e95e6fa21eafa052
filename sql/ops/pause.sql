create function ops.pause(organisation text, reason text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.set_state('pause', organisation, reason)
$$;

comment on function ops.pause is
  'Pause an organisation: refuse live sends, hold its queue. Live sends get 423 org_paused; reads and test keys work. A suspended one is paused once it is reinstated.';
