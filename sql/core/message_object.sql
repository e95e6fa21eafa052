create function core.message_object(m app.messages)
returns json
language sql stable
as $$
  select case m.channel
    when 'email' then core.message_fields(m)
    else (left(core.message_fields(m)::text, -1) || format(', "segments" : %s, "credits" : %s, "scheduledAt" : %s}',
      m.segments, m.credits, coalesce(to_json(core.iso(m.scheduled_at))::text, 'null')))::json
  end
$$;

comment on function core.message_object is 'Returns the message object of the API, without its events.';
