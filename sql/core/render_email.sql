create function core.render_email(subject text, html text, text text, variables jsonb)
returns core.rendered_email
language plpgsql immutable
as $$
declare
  v_html core.template_text := core.parse_template_text(render_email.html);
  v_text core.template_text := core.parse_template_text(render_email.text);
  v_sized core.sized_email := core.size_email(render_email.subject, v_html.bytes, v_html.names, v_text.bytes, v_text.names,
    render_email.variables);
  v_rendered core.rendered_email;
begin
  v_rendered.fields := v_sized.fields;
  -- A body that would be too large is never rendered.
  if v_sized.fields is null then
    v_rendered.subject := v_sized.subject;
    v_rendered.html := core.render_template_text(v_html, render_email.variables, true);
    v_rendered.text := core.render_template_text(v_text, render_email.variables, false);
  end if;
  return v_rendered;
end
$$;

comment on function core.render_email is
  'Returns subject and bodies of a template with the variables filled in, as an email with the templateId gets them; or in fields the problems.';
