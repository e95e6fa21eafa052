create function api.dashboard_render_template(
  session text, organisation text, subject text, html text, text text, variables jsonb
)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rendered core.rendered_email;
begin
  perform core.member_of(dashboard_render_template.session, dashboard_render_template.organisation);
  v_rendered := core.render_email(
    dashboard_render_template.subject,
    nullif(dashboard_render_template.html, ''),
    nullif(dashboard_render_template.text, ''),
    -- A variable without a value is shown by its name.
    (select coalesce(jsonb_object_agg(n.name, coalesce(dashboard_render_template.variables -> n.name, to_jsonb(n.name))), '{}')
      from unnest(core.variable_names(dashboard_render_template.subject, dashboard_render_template.html,
        dashboard_render_template.text)) n (name)));
  if v_rendered.fields is not null then
    perform core.refuse('validation_error', v_rendered.fields);
  end if;
  return jsonb_build_object('subject', v_rendered.subject, 'html', v_rendered.html, 'text', v_rendered.text);
end
$$;

comment on function api.dashboard_render_template is
  'Returns subject and bodies with the variables filled in, by the functions that render a templateId: {subject, html, text}. A variable without a value has its name as the value. Refuses as core.member_of does, and with validation_error.';
