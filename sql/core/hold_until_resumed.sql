create function core.hold_until_resumed(ids uuid[])
returns void
language sql volatile
as $$
  -- A resumption that commits meanwhile does not see these rows: the clock's next sweep finds them.
  insert into app.due_messages (message_id, organisation_id, due_at, priority, late_at)
  select m.id, m.organisation_id, null, core.priority(0, m.class), core.late_at(m.scheduled_at)
  from app.messages m
  where m.id = any (ids)
  on conflict do nothing
$$;

comment on function core.hold_until_resumed is
  'Hold messages until their organisation may send again; a scheduled one at most until it is too late to send it.';
