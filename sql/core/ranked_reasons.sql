create function core.ranked_reasons(reasons app.suppression_reason[])
returns app.suppression_reason[]
language sql immutable
as $$
  select array(select distinct_reason from (select distinct unnest(reasons) as distinct_reason) d
    order by distinct_reason <> 'manual', distinct_reason)
$$;

comment on function core.ranked_reasons is
  'Reasons to suppress an address, each once, the one that shows first: what was entered by hand, then the stronger before the weaker, whichever came first.';
