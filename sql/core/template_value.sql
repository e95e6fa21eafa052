create function core.template_value(name text, variables jsonb, escape_html boolean)
returns text
language sql immutable
as $$
  select case
    when name = 'unsubscribe_url' then '{{unsubscribe_url}}'
    when escape_html then
      replace(replace(replace(replace(replace(variables ->> name,
        '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'), '''', '&#39;')
    else variables ->> name
  end
$$;

comment on function core.template_value is
  'Returns the text that replaces {{name}}. {{unsubscribe_url}} stays: the attempt replaces it for each recipient.';
