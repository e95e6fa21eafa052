create function core.search_messages(
  organisation_id uuid, filter core.message_filter, page_size integer, before_id uuid default null,
  limit_ms integer default 100,
  out messages app.messages[], out next_id uuid, out searched_back_to timestamptz
)
language plpgsql stable
set enable_seqscan = off
as $$
begin
  messages := array(
    select m
    from app.messages m
    where m.organisation_id = search_messages.organisation_id
      and (before_id is null or m.id < before_id)
      and (filter.since is null or m.id >= core.first_id_at(filter.since))
      and (filter.until is null or m.id < core.first_id_at(filter.until))
      and (filter.status is null or m.status = filter.status)
      and (filter.channel is null or m.channel = filter.channel)
      and (filter.class is null or m.class = filter.class)
      and (filter.mode is null or m.mode = filter.mode)
      and (filter.tag is null or filter.tag = any (m.tags))
      and (filter."from" is null or lower(m.from_address) = lower(filter."from"))
      and (filter.subject is null or strpos(lower(m.subject), lower(filter.subject)) > 0)
      and (filter."to" is null or filter."to" = any (string_to_array(lower(m.to_address), ', '))
        or exists (select from app.bodies b where b.message_id = m.id and filter."to" = any (b.recipients)))
    order by m.id desc
    limit page_size + 1);
  if cardinality(messages) > page_size then
    messages := messages[:page_size];
    next_id := messages[page_size].id;
  end if;
end
$$;

comment on function core.search_messages is
  'Search the messages of an organisation, newest first, before a message or all (null). Returns a page, and next_id to continue before, null at the end. searched_back_to: how far a search came that ended early; null otherwise.';
