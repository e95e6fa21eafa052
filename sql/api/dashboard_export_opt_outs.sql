create function api.dashboard_export_opt_outs(session text, organisation text, cursor text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_export_opt_outs.session, dashboard_export_opt_outs.organisation);
begin
  return core.list_opt_outs(v_organisation, 1000, null, dashboard_export_opt_outs.cursor);
end
$$;

comment on function api.dashboard_export_opt_outs is
  'Returns 1 000 opted-out numbers of an organisation after the cursor, as core.list_opt_outs does. Refuses as core.member_of does.';
