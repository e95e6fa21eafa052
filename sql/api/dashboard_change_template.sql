create function api.dashboard_change_template(
  session text, organisation text, template text, version integer, name text, subject text, html text, text text
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_change_template.session, dashboard_change_template.organisation, 'member');
  v_template app.templates := core.own_template(v_organisation, dashboard_change_template.template);
begin
  -- Locks it, so that the second of two concurrent changes sees the first.
  v_template := core.find_template(core.encode_id('tpl', v_template.id));
  if v_template.version <> dashboard_change_template.version then
    perform core.refuse('validation_error', jsonb_build_object('_', jsonb_build_array(format(
      'Version %s was made by %s while you edited version %s. Compare the versions below; "Save" now replaces version %s.',
      v_template.version, coalesce(v_template.changed_by, 'an operator'), dashboard_change_template.version,
      v_template.version))));
  end if;
  perform ops.change_template(dashboard_change_template.template, dashboard_change_template.name,
    dashboard_change_template.subject, dashboard_change_template.html, dashboard_change_template.text);
end
$$;

comment on function api.dashboard_change_template is
  'Change a template of the organisation as ops.change_template does, for a member. Refuses as core.member_of does, with not_found, and with validation_error if version is not the present one.';
