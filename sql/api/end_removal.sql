create function api.end_removal(id uuid, is_removed boolean)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if end_removal.is_removed then
    perform core.end_claim(d) from app.domains d where d.id = end_removal.id and d.change = 'removing' for update;
    delete from app.domains d where d.id = end_removal.id and d.change = 'removing';
  else
    -- The outcome at the provider is unknown: the next check recreates the identity if it is gone.
    update app.domains d
    set change = null, change_since = null, next_check_at = core.now()
    where d.id = end_removal.id and d.change = 'removing';
  end if;
  return found::integer;
end
$$;

comment on function api.end_removal is
  'Remove a domain whose identity the provider has removed, or undo begin_removal. Returns 1 if the domain existed, else 0.';
