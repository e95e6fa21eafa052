create function core.placeholders(template text)
returns text[]
language sql immutable
as $$
  select array(
    select m.name[1]
    from regexp_matches(template, '\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}', 'g') with ordinality as m (name, place)
    order by m.place
  )
$$;

comment on function core.placeholders is 'The names in a template text, in order, repeats included.';
