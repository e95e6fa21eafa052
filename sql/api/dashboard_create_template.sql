create function api.dashboard_create_template(session text, organisation text, name text, subject text, html text, text text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.member_of(dashboard_create_template.session, dashboard_create_template.organisation, 'member');
  return ops.create_template(dashboard_create_template.organisation, dashboard_create_template.name,
    dashboard_create_template.subject, dashboard_create_template.html, dashboard_create_template.text);
end
$$;

comment on function api.dashboard_create_template is
  'Create a template as ops.create_template does, for a member. Returns its ID. Refuses as core.member_of does.';
