create function core.parse_template_text(template text)
returns core.template_text
language plpgsql immutable strict
as $$
declare
  v_parsed core.template_text;
begin
  v_parsed.literals := regexp_split_to_array(template, '\{\{\s*[A-Za-z0-9_.-]+\s*\}\}');
  v_parsed.names := core.placeholders(template);
  v_parsed.bytes := octet_length(array_to_string(v_parsed.literals, ''));
  return v_parsed;
end
$$;

comment on function core.parse_template_text is
  'Parse a subject or body of a template, once for all emails that use it.';
