create function api.dashboard_template(session text, organisation text, template text, version integer default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_template.session, dashboard_template.organisation);
  v_template app.templates := core.own_template(v_organisation, dashboard_template.template);
  v_shown app.template_versions := (v_template.id, v_template.version, v_template.name, v_template.subject, v_template.html,
    v_template.text, coalesce(v_template.changed_at, v_template.created_at), v_template.changed_by);
begin
  if dashboard_template.version <> v_template.version then
    select v.* into v_shown
    from app.template_versions v
    where v.template_id = v_template.id and v.version = dashboard_template.version;
    if not found then
      perform core.refuse('not_found');
    end if;
  end if;
  return jsonb_build_object(
    'id', core.encode_id('tpl', v_template.id),
    'version', v_template.version,
    'shown', jsonb_build_object(
      'version', v_shown.version, 'name', v_shown.name, 'subject', v_shown.subject,
      'html', coalesce(v_shown.html, ''), 'text', coalesce(v_shown.text, ''),
      'changedAt', core.iso(v_shown.changed_at), 'changedBy', v_shown.changed_by,
      'variables', core.variable_names(v_shown.subject, v_shown.html, v_shown.text)),
    'versions', (
      select jsonb_agg(jsonb_build_object(
          'version', v.version, 'name', v.name, 'subject', v.subject,
          'changedAt', core.iso(v.changed_at), 'changedBy', v.changed_by)
        order by v.version desc)
      from (
        select v_template.version, v_template.name, v_template.subject,
          coalesce(v_template.changed_at, v_template.created_at) as changed_at, v_template.changed_by
        union all
        select f.version, f.name, f.subject, f.changed_at, f.changed_by
        from app.template_versions f
        where f.template_id = v_template.id
      ) v),
    'domains', coalesce((
      select jsonb_agg(d.name order by d.name)
      from app.domains d
      where d.organisation_id = v_organisation and d.status = 'verified'), '[]'));
end
$$;

comment on function api.dashboard_template is
  'Returns a template: {id, version, shown, versions, domains}. shown is the content of the given version, by default the present one: {version, name, subject, html, text, changedAt, changedBy, variables}. versions lists all kept ones without bodies, the newest first. domains are the verified ones. Refuses as core.member_of does, and with not_found.';
