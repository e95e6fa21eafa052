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

comment on function core.placeholders is
  'Returns the names of the placeholders in a template text, in order, with repeats.';
