create function core.search_conditions(filter core.message_filter, is_settled boolean)
returns core.search_condition[]
language sql stable
as $$
  select array(
    select row(c.terms, null, null, null)::core.search_condition
    from (
      select array(
        select core.kind_term(channel, class, mode,
          case when is_settled or core.is_rare_status(filter.status::text) then filter.status end)
        from unnest(enum_range(null::app.channel)) channel, unnest(enum_range(null::app.class)) class,
          unnest(enum_range(null::app.mode)) mode
        where (filter.channel is null or channel = filter.channel) and (filter.class is null or class = filter.class)
          and (filter.mode is null or mode = filter.mode)
      ) as terms
      where coalesce(filter.channel::text, filter.class::text, filter.mode::text, filter.status::text) is not null
      union all
      select array['tag:' || filter.tag]
      union all
      select array['from:' || lower(filter."from")]
      union all
      select array[core.recipient_term(filter."to")]
    ) c
    where c.terms[1] is not null)
$$;

comment on function core.search_conditions is
  'Returns the terms by which the index narrows a search. is_settled: only messages whose status is indexed, whatever it is.';
