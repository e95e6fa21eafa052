create function core.deliveries_of(m app.messages)
returns jsonb
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
        'event', core.encode_id('evt', e.id), 'type', e.type, 'occurredAt', core.iso(e.occurred_at),
        'endpoint', core.encode_id('we', p.id), 'url', p.url, 'isDisabled', p.disabled_at is not null,
        'dueAt', core.iso(d.due_at), 'attempts', coalesce(a.attempts, '[]'))
      order by e.id, p.id)
    from app.webhook_events e
    join app.webhook_endpoints p on p.organisation_id = e.organisation_id
    left join app.webhook_deliveries d on d.endpoint_id = p.id and d.event_id = e.id
    cross join lateral (
      select jsonb_agg(jsonb_build_object(
          'attempt', a.attempt, 'startedAt', core.iso(a.started_at), 'status', a.status, 'error', a.error,
          'response', a.response, 'durationMs', a.duration_ms)
        order by a.started_at) as attempts
      from app.webhook_attempts a
      where a.endpoint_id = p.id and a.event_id = e.id
    ) a
    -- The times of IDs leave out older partitions.
    where e.message_id = m.id and e.organisation_id = m.organisation_id and e.id >= core.first_id_at(m.created_at)
      and (d.event_id is not null or a.attempts is not null)
  ), '[]');
end
$$;

comment on function core.deliveries_of is
  'Returns the deliveries of the webhook events of a message: [{event, type, occurredAt, endpoint, url, isDisabled, dueAt (null: no attempt follows), attempts: [{attempt, startedAt, status, error, response, durationMs}]}].';
