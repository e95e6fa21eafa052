create function api.end_removal(id uuid, is_removed boolean, actor text default null)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain app.domains;
begin
  if end_removal.is_removed then
    perform core.end_claim(d) from app.domains d where d.id = end_removal.id and d.change = 'removing' for update;
    delete from app.domains d where d.id = end_removal.id and d.change = 'removing' returning d.* into v_domain;
    perform core.update_name_claim(v_domain.name);
    if v_domain.id is not null and end_removal.actor is not null then
      perform set_config('postgram.user', end_removal.actor, true);
      perform core.audit('remove_domain', v_domain.organisation_id, v_domain.name, jsonb_build_object('status', v_domain.status), null);
    end if;
    return (v_domain.id is not null)::integer;
  end if;
  -- The outcome at the provider is unknown: the next check recreates the identity if it is gone.
  update app.domains d
  set change = null, change_since = null, next_check_at = core.now()
  where d.id = end_removal.id and d.change = 'removing';
  return found::integer;
end
$$;

comment on function api.end_removal is
  'Remove a domain whose identity the provider has removed, or undo begin_removal. actor: the user of the dashboard, whom the audit names; null for a call of the API. Returns 1 if the domain existed, else 0.';
