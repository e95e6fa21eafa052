create function core.change_template(template app.templates, name text, subject text, html text, text text, action text)
returns integer
language plpgsql volatile
as $$
declare
  v_before constant app.templates := change_template.template;
  v_after app.templates;
begin
  perform core.check_template(change_template.name, change_template.subject, change_template.html, change_template.text);
  if (v_before.name, v_before.subject, v_before.html, v_before.text) is not distinct from
    (change_template.name, change_template.subject, nullif(change_template.html, ''), nullif(change_template.text, ''))
  then
    return v_before.version;
  end if;
  insert into app.template_versions (template_id, version, name, subject, html, text, changed_at, changed_by)
  values (v_before.id, v_before.version, v_before.name, v_before.subject, v_before.html, v_before.text,
    coalesce(v_before.changed_at, v_before.created_at), v_before.changed_by);
  delete from app.template_versions v where v.template_id = v_before.id and v.version <= v_before.version - 50;
  update app.templates t
  set name = change_template.name, subject = change_template.subject,
    html = nullif(change_template.html, ''), text = nullif(change_template.text, ''),
    version = t.version + 1, changed_at = core.now(), changed_by = core.actor()
  where t.id = v_before.id
  returning t.* into v_after;
  perform core.audit(change_template.action, v_after.organisation_id, core.encode_id('tpl', v_after.id),
    core.template_digest(v_before), core.template_digest(v_after));
  return v_after.version;
end
$$;

comment on function core.change_template is
  'Replace the content of a template, which the caller has locked, and keep the version before. Returns the number of the new version; that of the present one if nothing differs. action is for the audit.';
