create function core.variable_names(subject text, html text, text text)
returns text[]
language sql immutable
as $$
  select array(
    select p.name
    from unnest(core.placeholders(concat_ws(' ', subject, html, text))) with ordinality as p (name, place)
    -- The attempt replaces it.
    where p.name <> 'unsubscribe_url'
    group by p.name
    order by min(p.place))
$$;

comment on function core.variable_names is
  'Returns the variables that a request must give for a template, each once, in the order of the text.';
