create function core.find_template(template text)
returns app.templates
language plpgsql volatile
as $$
declare
  v_id uuid := core.decode_id('tpl', template);
  v_ids uuid[] := array(
    select t.id from app.templates t
    where t.id = v_id or v_id is null and lower(t.name) = lower(template));
  v_template app.templates;
begin
  select t.* into v_template from app.templates t where t.id = v_ids[1] for no key update;
  perform core.check_is_one('template', template, array(
    select format('%s (of %s)', core.encode_id('tpl', t.id), o.name)
    from app.templates t
    join app.organisations o on o.id = t.organisation_id
    where t.id = any (v_ids)
    order by t.id), 'select id, name from ops.templates');
  return v_template;
end
$$;

comment on function core.find_template is
  'Returns and locks the template with this ID, or this name in any case. Raises an error if there is none, or several.';
