create function api.dashboard_suppressions(
  session text, organisation text, search text default null, cursor text default null, phone text default null,
  opt_outs_cursor text default null
)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_suppressions.session, dashboard_suppressions.organisation);
begin
  return jsonb_build_object(
    'suppressions', core.list_suppressions(v_organisation, core.page_rows(), dashboard_suppressions.search, dashboard_suppressions.cursor)::jsonb,
    'optOuts', core.list_opt_outs(v_organisation, core.page_rows(), dashboard_suppressions.phone, dashboard_suppressions.opt_outs_cursor));
end
$$;

comment on function api.dashboard_suppressions is
  'Returns a page of the suppressed addresses and of the opted-out numbers of an organisation: {suppressions, optOuts}, as core.list_suppressions and core.list_opt_outs return them. search is a part of an address, phone of a number. Refuses as core.member_of does.';
