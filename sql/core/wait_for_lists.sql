create function core.wait_for_lists(ids uuid[])
returns void
language sql volatile
as $$
  -- Spread, so that the messages of an outage do not come back all at once.
  insert into app.due_messages (message_id, organisation_id, due_at, priority, late_at)
  select m.id, m.organisation_id, core.now() + (4 + 2 * random()) * interval '1 minute', core.priority(0, m.class),
    core.late_at(m.scheduled_at)
  from app.messages m
  where m.id = any (ids)
  on conflict on constraint due_messages_pkey do update set due_at = excluded.due_at
$$;

comment on function core.wait_for_lists is
  'Defer marketing by about 5 minutes, because the lists of another cell are behind (core.are_lists_behind).';
