create function ops.create_template(organisation text, name text, subject text, html text, text text)
returns text
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_id uuid := core.new_id(core.now());
  v_names text[];
begin
  if coalesce(length(create_template.name), 0) not between 1 and 200 then
    raise exception 'the name must be 1 to 200 characters';
  elsif coalesce(length(create_template.subject), 0) not between 1 and 998 or create_template.subject ~ '[\x01-\x1f\x7f]' then
    raise exception 'the subject must be 1 to 998 characters without line breaks';
  elsif coalesce(nullif(create_template.html, ''), create_template.text, '') = '' then
    raise exception 'give html, text or both';
  elsif octet_length(create_template.html) > 2097152 or octet_length(create_template.text) > 1048576 then
    raise exception 'html may have 2 MB, text 1 MB';
  end if;
  v_names := core.placeholders(concat_ws(' ', create_template.subject, create_template.html, create_template.text));
  if cardinality(v_names) > 200 then
    raise exception 'a template may have 200 placeholders';
  elsif exists (select from unnest(v_names) n where length(n) > 64) then
    raise exception 'the name of a placeholder may have 64 characters';
  end if;
  insert into app.templates (id, organisation_id, name, subject, html, text, created_at)
  values (v_id, v_organisation, create_template.name, create_template.subject,
    nullif(create_template.html, ''), nullif(create_template.text, ''), core.now());
  return core.encode_id('tpl', v_id);
end
$$;

comment on function ops.create_template is
  'Create a template with {{name}} placeholders in subject, html and text (html or text may be null); answers its id.';
