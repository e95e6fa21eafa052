create function api.dashboard_templates(session text, organisation text, before text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_templates.session, dashboard_templates.organisation);
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
        'id', core.encode_id('tpl', t.id), 'name', t.name, 'subject', t.subject, 'version', t.version,
        'changedAt', core.iso(coalesce(t.changed_at, t.created_at)), 'changedBy', t.changed_by)
      order by t.id desc)
    from (
      select *
      from app.templates
      where organisation_id = v_organisation
        and (dashboard_templates.before is null or id < core.decode_id('tpl', dashboard_templates.before))
      order by id desc
      limit core.page_rows() + 1
    ) t), '[]');
end
$$;

comment on function api.dashboard_templates is
  'Returns a page of the templates of an organisation and one more (core.page_rows), newest first, with IDs below before if it is given: [{id, name, subject, version, changedAt, changedBy}]. Refuses as core.member_of does.';
