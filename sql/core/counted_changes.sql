create function core.counted_changes(changes core.unsummed_change[])
returns core.counted_change[]
language sql stable
set enable_seqscan = off
as $$
  select array(
    select row(
      (m.created_at at time zone 'UTC')::date, m.organisation_id, m.channel, m.class, m.tags, t.change,
      coalesce(m.segments, m.recipients), m.error_code, m.error_message,
      case t.change when 'sent' then m.sent_at when 'delivered' then m.delivered_at end
        - greatest(m.created_at, m.scheduled_at)
    )::core.counted_change
    from unnest(changes) t
    join app.messages m on m.id = t.message_id
    where m.mode = 'live' and not m.is_sandbox
      -- A message that an operator retried failed before, and counts once as failed.
      and (t.change <> 'failed' or not exists (
        select from app.events e where e.message_id = m.id and e.type = 'queued' and e.occurred_at <= t.occurred_at)))
$$;

comment on function core.counted_changes is
  'Returns the changes that reports count, with what they are summed by: those of live messages that are not for the sandbox.';
