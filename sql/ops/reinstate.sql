create function ops.reinstate(organisation text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.set_state('reinstate', organisation)
$$;

comment on function ops.reinstate is
  'End the suspension of an organisation. Messages rejected in the meantime stay rejected. A pause stays in effect.';
