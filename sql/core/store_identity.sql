create function core.store_identity(domain_id uuid, identity jsonb)
returns void
language plpgsql volatile
as $$
begin
  if identity is null or exists (
    -- A key that the service holds is never replaced by another one of the same provider, for example when two
    -- processes create one at the same time: mail already signed needs it.
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
  -- The old keys belong to another provider, or this provider has lost them.
  delete from app.dkim_keys k where k.domain_id = store_identity.domain_id;
  insert into app.dkim_keys (domain_id, selector, state, host, value, private_key, created_at)
  select store_identity.domain_id, k.selector, k.state,
    core.dkim_host(k.selector, store_identity.domain_id, identity ->> 'dkim_zone'), k.value, k.private_key, core.now()
  from jsonb_populate_recordset(null::core.dkim_key, identity -> 'keys') as k;
end
$$;

comment on function core.store_identity is
  'Store what the provider created for a domain (core.identity). Does nothing for null, or if the service already holds an active key of the domain.';
