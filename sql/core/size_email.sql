create function core.size_email(
  subject text, html_bytes integer, html_names text[], text_bytes integer, text_names text[], variables jsonb
)
returns core.sized_email
language plpgsql immutable
as $$
declare
  c_control constant text := '[\x01-\x1f\x7f-\x9f]+';
  v_subject core.template_text := core.parse_template_text(subject);
  v_html_bytes bigint;
  v_text_bytes bigint;
  v_sized core.sized_email;
begin
  select jsonb_object_agg('variables.' || missing.name, '["is needed by the template"]'::jsonb) into v_sized.fields
  from (
    select unnest(v_subject.names || html_names || text_names) as name
    except select 'unsubscribe_url'
    except select jsonb_object_keys(variables)
  ) missing;
  if v_sized.fields is not null then
    return v_sized;
  end if;

  -- At twice the limit it is too long in any case. Line breaks of neighbouring values may merge into one space,
  -- so that the sum of the lengths is not exact.
  if (
    select sum(n.occurrences * length(regexp_replace(core.template_value(n.name, variables, false), c_control, ' ', 'g')))
    from (select u.name, count(*) as occurrences from unnest(v_subject.names) as u (name) group by u.name) n
  ) > 2 * 998 then
    v_sized.fields := '{"subject": ["must be 1 to 998 characters once rendered"]}';
    return v_sized;
  end if;
  -- A line break in a value must not become a header of its own.
  v_sized.subject := regexp_replace(
    core.render_template_text(v_subject, variables, false), c_control, ' ', 'g');
  v_html_bytes := core.template_bytes(html_bytes, html_names, variables, true);
  v_text_bytes := core.template_bytes(text_bytes, text_names, variables, false);
  if length(v_sized.subject) not between 1 and 998 then
    v_sized.fields := '{"subject": ["must be 1 to 998 characters once rendered"]}';
  elsif v_html_bytes > 2097152 or v_text_bytes > 1048576 then
    v_sized.fields := '{"templateId": ["is larger than a body may be once rendered"]}';
  else
    v_sized.bytes := coalesce(v_html_bytes, 0) + coalesce(v_text_bytes, 0);
  end if;
  return v_sized;
end
$$;

comment on function core.size_email is
  'Returns the subject of a templated email and the size of its bodies, or in fields the problems of the request. Renders nothing large.';
