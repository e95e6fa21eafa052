create function core.kind_term(channel app.channel, class app.class, mode app.mode, status app.message_status default null)
returns text
language sql stable
as $$
  select 'is:' || channel || ' ' || class || ' ' || mode || coalesce(' ' || status, '')
$$;

comment on function core.kind_term is
  'Returns the term by which messages of a channel, class and mode are searched, with any status (null) or with one.';
