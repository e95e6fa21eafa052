create function ops.delete_template(template text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_template app.templates := core.find_template(template);
begin
  delete from app.template_versions v where v.template_id = v_template.id;
  delete from app.templates t where t.id = v_template.id;
  perform core.audit('delete_template', v_template.organisation_id, core.encode_id('tpl', v_template.id), core.template_digest(v_template), null);
end
$$;

comment on function ops.delete_template is
  'Delete a template with its versions. New requests that name it are refused; messages already accepted are still sent.';
