create function core.render_parts(template text, variables jsonb, escape_html boolean)
returns text
language sql immutable
as $$
  -- One pass over literals and names in turn, so that a value is never searched for placeholders.
  select string_agg(
    part.literal || coalesce(
      case
        when part.name = 'unsubscribe_url' then '{{unsubscribe_url}}'
        when escape_html then
          replace(replace(replace(replace(replace(variables ->> part.name,
            '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'), '''', '&#39;')
        else variables ->> part.name
      end, ''),
    '' order by part.place)
  from (
    select l.place, l.literal, p.name
    from unnest(regexp_split_to_array(template, '\{\{\s*[A-Za-z0-9_.-]+\s*\}\}'))
      with ordinality as l (literal, place)
    left join unnest(core.placeholders(template)) with ordinality as p (name, place)
      on p.place = l.place
  ) part
$$;

comment on function core.render_parts is
  'A template text with its {{names}} filled in; {{unsubscribe_url}} is left for the hand-over (interface 4.1, rule 5).';
