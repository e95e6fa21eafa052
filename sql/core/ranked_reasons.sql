create function core.ranked_reasons(reasons app.suppression_reason[])
returns app.suppression_reason[]
language sql immutable
as $$
  select array(select distinct_reason from (select distinct unnest(reasons) as distinct_reason) d
    order by distinct_reason <> 'manual', distinct_reason)
$$;

comment on function core.ranked_reasons is
  'Returns reasons to suppress an address, each once, the one to show first: manual, then the stronger before the weaker.';
