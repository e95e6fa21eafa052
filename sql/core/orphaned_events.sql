create function core.orphaned_events(person text)
returns setof uuid
language sql stable
as $$
  select v.id
  from app.webhook_events v
  -- Messages are dropped by whole months. The subquery runs once, not for each event.
  where v.message_id < (select core.first_id_at(min(p.span_from)) from core.partitions() p where p.parent = 'messages')
    and core.names_person(v.body, person)
$$;

comment on function core.orphaned_events is
  'Returns the IDs of webhook events that name a person (address in lower case, or number) and whose message is no longer stored. Reports that arrive long after a message outlive it.';
