create function api.end_release(id uuid, is_removed boolean)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain app.domains;
begin
  select d.* into v_domain from app.domains d
  where d.id = end_release.id and d.change = 'removing'
  for update;
  if v_domain.id is null then
    return 0;
  end if;
  -- A check that ended in the meantime may have verified the domain; then it keeps the name.
  if end_release.is_removed and not core.holds_name(v_domain) then
    perform core.end_claim(v_domain);
    delete from app.domains d where d.id = v_domain.id;
    perform core.update_name_claim(v_domain.name);
    if v_domain.organisation_id is not null then
      perform core.audit('lose_domain', v_domain.organisation_id, v_domain.name,
        jsonb_build_object('status', v_domain.status), null);
    end if;
    return 1;
  end if;
  -- The next check recreates the identity if the provider has removed it.
  update app.domains d
  set change = null, change_since = null, next_check_at = case when d.organisation_id is not null then core.now() end
  where d.id = v_domain.id;
  return 0;
end
$$;

comment on function api.end_release is
  'Free a domain name whose identity the provider has removed, or undo begin_release. Returns 1 if the name is free, else 0.';
