create function core.message_fields(m app.messages)
returns json
language sql stable
as $$
  select json_build_object(
    'id', core.message_id(m.channel, m.id),
    'channel', m.channel,
    'class', m.class,
    'status', m.status,
    'to', m.to_address,
    'from', m.from_address,
    'subject', m.subject,
    'tags', m.tags,
    'error', case when m.error_code is not null
      then json_build_object('code', m.error_code, 'message', m.error_message) end,
    'createdAt', core.iso(m.created_at),
    'sentAt', core.iso(m.sent_at),
    'deliveredAt', core.iso(m.delivered_at)
  )
$$;

comment on function core.message_fields is
  'Returns the fields that the message objects of both channels share. A separate function, so that Postgres can inline both; that halves their cost.';
