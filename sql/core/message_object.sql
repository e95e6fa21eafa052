create function core.message_object(m app.messages)
returns json
language sql stable
as $$
  select case m.channel
    when 'email' then o.object
    else (left(o.object::text, -1) || format(', "segments" : %s, "credits" : %s, "scheduledAt" : %s}',
      m.segments, m.credits, coalesce(to_json(core.iso(m.scheduled_at))::text, 'null')))::json
  end
  from (
    select json_build_object(
      'id', core.encode_id(case m.channel when 'email' then 'em' else 'sm' end, m.id),
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
    ) as object
  ) o
$$;

comment on function core.message_object is 'The message object of interface 2.1, without its events.';
