create function ops.pause(organisation text, reason text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.set_state('pause', organisation, reason)
$$;

comment on function ops.pause is
  'Pause an organisation: refuse live sends and hold queued messages. Live sends get 423 org_paused. Reads and test keys still work. ops.resume ends the pause. On a suspended organisation the pause takes effect when the suspension ends.';
