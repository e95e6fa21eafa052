create function ops.create_template(organisation text, name text, subject text, html text, text text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_template app.templates;
begin
  perform core.check_template(create_template.name, create_template.subject, create_template.html, create_template.text);
  insert into app.templates (id, organisation_id, name, subject, html, text, created_at, changed_at, changed_by)
  values (core.new_id(core.now()), v_organisation, create_template.name, create_template.subject,
    nullif(create_template.html, ''), nullif(create_template.text, ''), core.now(), core.now(), core.actor())
  returning * into v_template;
  perform core.audit('create_template', v_organisation, core.encode_id('tpl', v_template.id), null,
    core.template_digest(v_template));
  return core.encode_id('tpl', v_template.id);
end
$$;

comment on function ops.create_template is
  'Create a template and return its ID. Subject, html and text may contain placeholders such as {{name}}. Either html or text may be null.';
