create function ops.enable_webhook_endpoint(endpoint text, replay boolean default false)
returns bigint
language plpgsql volatile security definer
set search_path = ''
as $$
declare
  v_endpoint app.webhook_endpoints := core.find_webhook_endpoint(endpoint);
  v_first_id uuid;
  v_last_id uuid := core.first_id_at(core.now() + interval '1 day');
begin
  if replay is null then
    raise exception 'say whether what it missed is replayed: true or false';
  end if;
  update app.webhook_endpoints p
  set disabled_at = null, disabled_reason = null, failing_since = null, warned_at = null, last_error = null
  where p.id = v_endpoint.id and p.disabled_at is not null
  returning p.* into v_endpoint;
  if not found then
    v_endpoint := core.find_webhook_endpoint(endpoint);
  end if;

  v_first_id := greatest(core.first_replayable_id(), core.first_id_at(v_endpoint.created_at));
  if replay then
    return core.replay(v_endpoint,
      array(select core.events_for(v_endpoint, v_first_id, v_last_id, true)));
  end if;
  return (select count(*) from core.events_for(v_endpoint, v_first_id, v_last_id, true));
end
$$;

comment on function ops.enable_webhook_endpoint is
  'Deliver to an endpoint again. Answers how many events it missed: those of its types, of the last 30 days and since it was made, that have not arrived there. With replay => true these are delivered now; that may be asked for later as well.';
