-- Without subqueries, so that Postgres can inline it: a search calls it for every message that it reads.
create function core.matches_filter(m app.messages, filter core.message_filter)
returns boolean
language sql stable
as $$
  select (filter.status is null or m.status = filter.status)
    and (filter.channel is null or m.channel = filter.channel)
    and (filter.class is null or m.class = filter.class)
    and (filter.mode is null or m.mode = filter.mode)
    and (filter.tag is null or filter.tag = any (m.tags))
    and (filter."from" is null or lower(m.from_address) = lower(filter."from"))
    and (filter.subject is null or strpos(lower(m.subject), lower(filter.subject)) > 0)
    and (filter."to" is null or core.is_sent_to(m, filter."to"))
$$;

comment on function core.matches_filter is
  'Returns whether a message matches a filter. The times of the filter are not compared.';
