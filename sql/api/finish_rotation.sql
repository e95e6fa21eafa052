create function api.finish_rotation(id uuid, activate text, retire text, key jsonb)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_zone text;
begin
  select d.dkim_zone into v_zone from app.domains d where d.id = finish_rotation.id for no key update;
  if not found then
    return;
  end if;
  update app.dkim_keys k
  set state = case k.selector when finish_rotation.activate then 'active' else 'retired' end::app.dkim_state
  where k.domain_id = finish_rotation.id and k.selector in (finish_rotation.activate, finish_rotation.retire);
  insert into app.dkim_keys (domain_id, selector, state, host, value, private_key, created_at)
  select finish_rotation.id, n.selector, n.state, core.dkim_host(n.selector, finish_rotation.id, v_zone),
    n.value, n.private_key, core.now()
  from jsonb_populate_record(null::core.dkim_key, finish_rotation.key) as n
  on conflict on constraint dkim_keys_pkey do update
    set state = excluded.state, value = excluded.value, private_key = excluded.private_key, created_at = excluded.created_at;
end
$$;

comment on function api.finish_rotation is
  'Record that a domain''s DKIM keys were rotated: the selector that signs now, the retired one and the new key. Does nothing if the domain is gone.';
