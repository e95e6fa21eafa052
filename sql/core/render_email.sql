create function core.render_email(organisation_id uuid, template_id text, subject text, variables jsonb)
returns core.rendered_email
language plpgsql stable
as $$
declare
  v_template app.templates;
  v_subject text;
  v_rendered core.rendered_email;
begin
  select t.* into v_template
  from app.templates t
  where t.id = core.decode_id('tpl', render_email.template_id)
    and t.organisation_id = render_email.organisation_id;
  if v_template.id is null then
    v_rendered.fields := '{"templateId": ["is not a template of this organisation"]}';
    return v_rendered;
  end if;

  v_subject := coalesce(render_email.subject, v_template.subject);
  select jsonb_object_agg('variables.' || missing.name, '["is needed by the template"]'::jsonb) into v_rendered.fields
  from (
    select unnest(core.placeholders(concat_ws(' ', v_subject, v_template.html, v_template.text))) as name
    except select 'unsubscribe_url'
    except select jsonb_object_keys(coalesce(variables, '{}'))
  ) missing;
  if v_rendered.fields is not null then
    return v_rendered;
  end if;

  -- A line break in a value must not become a header of its own.
  v_rendered.subject := regexp_replace(core.render_parts(v_subject, variables, false), '[\x01-\x1f\x7f-\x9f]+', ' ', 'g');
  v_rendered.html := core.render_parts(v_template.html, variables, true);
  v_rendered.text := core.render_parts(v_template.text, variables, false);
  if length(v_rendered.subject) not between 1 and 998 then
    v_rendered.fields := '{"subject": ["must be 1 to 998 characters once rendered"]}';
  elsif octet_length(v_rendered.html) > 2097152 or octet_length(v_rendered.text) > 1048576 then
    v_rendered.fields := '{"templateId": ["is larger than a body may be once rendered"]}';
  end if;
  return v_rendered;
end
$$;

comment on function core.render_email is
  'Subject and bodies of a template with its variables; fields says what is wrong with the request instead.';
