create function ops.change_template(template text, name text, subject text, html text, text text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_before app.templates := core.find_template(template);
  v_after app.templates;
begin
  perform core.check_template(change_template.name, change_template.subject, change_template.html, change_template.text);
  update app.templates t
  set name = change_template.name, subject = change_template.subject,
    html = nullif(change_template.html, ''), text = nullif(change_template.text, '')
  where t.id = v_before.id
  returning t.* into v_after;
  perform core.audit('change_template', v_after.organisation_id, template,
    core.template_digest(v_before), core.template_digest(v_after));
end
$$;

comment on function ops.change_template is
  'Replace all of a template, from the next request on (html or text may be null). What was accepted with it goes out as it was.';
