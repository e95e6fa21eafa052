create function core.timeline(m app.messages)
returns json
language plpgsql stable
as $$
begin
  return (
    select json_agg(json_build_object('type', e.type, 'occurredAt', core.iso(e.occurred_at), 'detail', e.detail)
      order by e.place, e.occurred_at, e.type, e.provider_event_id, e.id)
    from (
      -- A scheduled SMS gets a separate queued event at its time; a test message has none.
      select 0 as place,
        case when m.scheduled_at is not null and m.mode = 'live' then 'scheduled' else 'queued' end::app.event_type as type,
        m.created_at as occurred_at, null as provider_event_id, 0 as id, '{}'::jsonb as detail
      union all
      select 2, 'sent', m.sent_at, null, 0,
        jsonb_strip_nulls(jsonb_build_object('attempt', nullif(m.attempts, 0), 'provider', m.provider))
      where m.sent_at is not null
      union all
      -- Receipts come after 'sent' even if the provider's clock is behind the service's.
      select case when e.provider_event_id is null and e.occurred_at <= coalesce(m.sent_at, 'infinity') then 1 else 3 end,
        e.type, e.occurred_at, e.provider_event_id, e.id, e.detail
      from app.events e
      where e.message_id = m.id
    ) e
  );
end
$$;

comment on function core.timeline is
  'Returns all events of a message, oldest first. The first event and "sent" are derived from the message itself.';
