create function api.dashboard_delete_template(session text, organisation text, template text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_template(
    core.member_of(dashboard_delete_template.session, dashboard_delete_template.organisation, 'member'),
    dashboard_delete_template.template);
  perform ops.delete_template(dashboard_delete_template.template);
end
$$;

comment on function api.dashboard_delete_template is
  'Delete a template of the organisation as ops.delete_template does, for a member. Refuses as core.member_of does, and with not_found.';
