create function core.orphaned_events(person text)
returns setof uuid
language sql stable
as $$
  select v.id
  from app.webhook_events v
  -- Whole months of messages go at a time. Asked once, and not for each event.
  where v.message_id < (select core.first_id_at(min(p.span_from)) from core.partitions() p where p.parent = 'messages')
    and strpos(lower(v.body), ltrim(person, '+')) > 0 and core.unnamed(v.body, person) <> v.body
$$;

comment on function core.orphaned_events is
  'The webhook events that name an address, in lower case, or a number, and whose message is not kept any more: what is reported long after a message outlives it.';
