create function core.defer_messages(ids uuid[])
returns void
language sql volatile
as $$
  -- A resumption that commits meanwhile does not see these rows: the clock's sweep finds them.
  insert into app.due_messages (message_id, organisation_id, priority, late_at)
  select m.id, m.organisation_id, core.priority(0, m.class),
    core.late_at(m.scheduled_at)
  from app.messages m
  where m.id = any (ids)
  on conflict do nothing
$$;

comment on function core.defer_messages is
  'Put messages aside until their organisation may send again; a scheduled one no longer than until it is late.';
