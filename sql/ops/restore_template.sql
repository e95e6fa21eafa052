create function ops.restore_template(template text, version integer)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_template app.templates := core.find_template(template);
  v_version app.template_versions;
begin
  select v.* into v_version
  from app.template_versions v
  where v.template_id = v_template.id and v.version = restore_template.version;
  if not found then
    raise exception 'the template has no former version %', coalesce(restore_template.version::text, 'null')
      using hint = format('select version, changed_at, changed_by, name from ops.template_versions where template = %L',
        core.encode_id('tpl', v_template.id));
  end if;
  return core.change_template(v_template, v_version.name, v_version.subject, v_version.html, v_version.text,
    'restore_template');
end
$$;

comment on function ops.restore_template is
  'Give a template the content of a former version (ops.template_versions). This makes a new version, so it can be undone in the same way. Returns the number of the new version.';
