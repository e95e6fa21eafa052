create function core.check_template(name text, subject text, html text, text text)
returns void
language plpgsql immutable
as $$
declare
  v_names text[];
begin
  perform core.check_name(name);
  if coalesce(length(subject), 0) not between 1 and 998 or subject ~ '[\x01-\x1f\x7f]' then
    raise exception 'the subject must be 1 to 998 characters without line breaks';
  elsif coalesce(nullif(html, ''), text, '') = '' then
    raise exception 'give html, text or both';
  elsif octet_length(html) > 2097152 or octet_length(text) > 1048576 then
    raise exception 'html must be at most 2 MB and text at most 1 MB';
  end if;
  v_names := core.placeholders(concat_ws(' ', subject, html, text));
  if cardinality(v_names) > 200 then
    raise exception 'a template must have at most 200 placeholders';
  elsif exists (select from unnest(v_names) n where length(n) > 64) then
    raise exception 'the name of a placeholder must be at most 64 characters';
  end if;
end
$$;

comment on function core.check_template is
  'Raises an error if a template is empty or too long, or has too many or too long placeholders.';
