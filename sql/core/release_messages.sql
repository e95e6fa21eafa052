create function core.release_messages(due app.due_messages[])
returns integer
language sql volatile
as $$
  select core.add_jobs(array_agg(core.send_job(
    m.channel, m.id, d.priority,
    case when d.due_at <> 'infinity' then now() + (d.due_at - core.now()) end)))
  from unnest(due) d
  join app.messages m on m.id = d.message_id
$$;

comment on function core.release_messages is 'Enqueue messages that waited, each to run when it falls due.';
