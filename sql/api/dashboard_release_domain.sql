create function api.dashboard_release_domain(session text, name text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_release_domain.session);
  perform ops.release_domain(dashboard_release_domain.name);
end
$$;

comment on function api.dashboard_release_domain is
  'Release a domain as ops.release_domain does, for an operator. Refuses as core.operator_of does.';
