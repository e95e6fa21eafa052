create function ops.change_template(template text, name text, subject text, html text, text text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
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
  perform core.audit('change_template', v_after.organisation_id, core.encode_id('tpl', v_after.id),
    core.template_digest(v_before), core.template_digest(v_after));
end
$$;

comment on function ops.change_template is
  'Replace the name, subject and bodies of a template. Either html or text may be null. The change applies to new requests; messages already accepted keep the old content.';
