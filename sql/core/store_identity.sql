create function core.store_identity(domain_id uuid, identity jsonb)
returns void
language plpgsql volatile
as $$
#variable_conflict use_column
begin
  if identity is null or exists (
    -- A key that we hold is never lost. Mail that it signed needs it, so it gives way to no other one of
    -- the same provider, as when two processes make one at a time.
    select from app.domains d
    join app.dkim_keys k on k.domain_id = d.id and k.state = 'active' and k.private_key is not null
    where d.id = store_identity.domain_id and d.provider = identity ->> 'provider'
      and d.dkim_zone = identity ->> 'dkim_zone'
  ) then
    return;
  end if;
  update app.domains d
  set provider = identity ->> 'provider', dkim_zone = identity ->> 'dkim_zone'
  where d.id = store_identity.domain_id;
  -- What there was is another provider's, or was lost at this one.
  delete from app.dkim_keys k where k.domain_id = store_identity.domain_id;
  insert into app.dkim_keys (domain_id, selector, state, host, value, private_key, created_at)
  select store_identity.domain_id, k.selector, k.state,
    core.dkim_host(k.selector, store_identity.domain_id, identity ->> 'dkim_zone'), k.value, k.private_key, core.now()
  from jsonb_populate_recordset(null::core.dkim_key, identity -> 'keys') as k;
end
$$;

comment on function core.store_identity is
  'Note what the provider made for a domain: {provider, dkim_zone, keys: [{selector, state, value, private_key}]}; nothing for null, nor when we hold its active key already.';
