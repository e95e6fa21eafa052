create function api.dashboard_restore_template(session text, organisation text, template text, version integer)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_template(
    core.member_of(dashboard_restore_template.session, dashboard_restore_template.organisation, 'member'),
    dashboard_restore_template.template);
  return ops.restore_template(dashboard_restore_template.template, dashboard_restore_template.version);
end
$$;

comment on function api.dashboard_restore_template is
  'Restore a version of a template of the organisation as ops.restore_template does, for a member. Returns the number of the new version. Refuses as core.member_of does, and with not_found.';
