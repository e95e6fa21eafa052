create function ops.change_template(template text, name text, subject text, html text, text text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.change_template(core.find_template(template), change_template.name, change_template.subject,
    change_template.html, change_template.text, 'change_template');
end
$$;

comment on function ops.change_template is
  'Replace the name, subject and bodies of a template. Either html or text may be null. The change applies to new requests; messages already accepted keep the old content. ops.restore_template undoes it.';
