create function api.dashboard_import_consents(
  session text, organisation text, phones text[], sources text[], ends_opt_outs boolean
)
returns text[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return core.import_consents(
    core.member_of(dashboard_import_consents.session, dashboard_import_consents.organisation, 'member'),
    dashboard_import_consents.phones, dashboard_import_consents.sources, dashboard_import_consents.ends_opt_outs);
end
$$;

comment on function api.dashboard_import_consents is
  'Record consents as core.import_consents does. phones: numbers in E.164, each once; sources: 1 to 1000 characters for each. Returns the numbers that were skipped because they opted out. Refuses as core.member_of does.';
