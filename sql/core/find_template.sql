create function core.find_template(template text)
returns app.templates
language plpgsql volatile
as $$
declare
  v_template app.templates;
begin
  select t.* into v_template from app.templates t where t.id = core.decode_id('tpl', template) for no key update;
  if v_template.id is null then
    raise exception 'there is no template %', coalesce(quote_literal(template), 'null')
      using hint = 'select id, name from ops.templates';
  end if;
  return v_template;
end
$$;

comment on function core.find_template is 'The template that an operator named, locked; raises one sentence when there is none.';
