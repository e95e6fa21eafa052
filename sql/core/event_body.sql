create function core.event_body(id uuid, type app.webhook_event_type, occurred_at timestamptz, message app.messages)
returns text
language sql stable
as $$
  select json_build_object('id', core.encode_id('evt', id), 'type', type, 'occurredAt', core.iso(occurred_at),
    'data', core.message_object(message))::text
$$;

comment on function core.event_body is
  'Returns the JSON text of an event, with its message as it is now.';
