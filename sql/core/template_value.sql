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
  'The text that takes the place of {{name}}; {{unsubscribe_url}} is left for the attempt (interface 4.1, rule 5).';
