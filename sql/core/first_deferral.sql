create function core.first_deferral(message_id uuid)
returns timestamptz
language sql stable
as $$
  select min(e.occurred_at)
  from app.events e
  where e.message_id = first_deferral.message_id and e.type = 'deferred' and e.provider_event_id is null
    -- A retry by an operator restarts the count.
    and e.id > coalesce(
      (select max(q.id) from app.events q where q.message_id = first_deferral.message_id and q.type = 'queued'), 0)
$$;

comment on function core.first_deferral is
  'Returns when an attempt at a message was first deferred since the message was queued; null if none was.';
