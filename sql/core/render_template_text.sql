create function core.render_template_text(template core.template_text, variables jsonb, escape_html boolean)
returns text
language plpgsql immutable
as $$
declare
  v_parts text[] := template.literals;
  v_values jsonb;
begin
  select jsonb_object_agg(n.name, core.template_value(n.name, variables, escape_html)) into v_values
  from (select distinct u.name from unnest(template.names) as u (name)) n;
  -- Join literals and values alternately, so that a value is never searched for placeholders.
  for i in 1 .. coalesce(cardinality(template.names), 0) loop
    v_parts[i] := v_parts[i] || (v_values ->> template.names[i]);
  end loop;
  return array_to_string(v_parts, '');
end
$$;

comment on function core.render_template_text is
  'Returns a parsed subject or body with its variables filled in; null for none. Time and memory are linear in its length.';
