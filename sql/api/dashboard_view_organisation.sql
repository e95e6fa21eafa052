create function api.dashboard_view_organisation(session text, organisation text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_user app.users := core.operator_of(dashboard_view_organisation.session);
  v_organisation uuid := core.organisation_id(dashboard_view_organisation.organisation);
begin
  update app.sessions s
  set viewed_organisation_id = v_organisation
  where s.sha256 = decode(dashboard_view_organisation.session, 'hex');
  perform core.audit('view_organisation', v_organisation, v_user.email, null, '{"role": "viewer"}');
end
$$;

comment on function api.dashboard_view_organisation is
  'Let an operator read the dashboard of an organisation in this session, as its owner sees it. Written to the audit. Refuses as core.operator_of does.';
