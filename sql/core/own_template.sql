create function core.own_template(organisation_id uuid, template text)
returns app.templates
language plpgsql stable
as $$
declare
  v_template app.templates;
begin
  select t.* into v_template
  from app.templates t
  where t.id = core.decode_id('tpl', own_template.template) and t.organisation_id = own_template.organisation_id;
  if not found then
    perform core.refuse('not_found');
  end if;
  return v_template;
end
$$;

comment on function core.own_template is
  'Returns the template with this ID (tpl_…) of an organisation. Refuses with not_found if the organisation has none.';
