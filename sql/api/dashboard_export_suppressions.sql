create function api.dashboard_export_suppressions(session text, organisation text, cursor text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_export_suppressions.session, dashboard_export_suppressions.organisation);
begin
  return core.list_suppressions(v_organisation, 1000, null, dashboard_export_suppressions.cursor);
end
$$;

comment on function api.dashboard_export_suppressions is
  'Returns 1 000 suppressed addresses of an organisation after the cursor, as core.list_suppressions does. Refuses as core.member_of does.';
