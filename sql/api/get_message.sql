create function api.get_message(organisation_id uuid, channel text, id text)
returns text
language sql stable security definer
set search_path = ''
as $$
  -- Text joined to text, so that the fields keep the order in which the interface lists them.
  select left(core.message_object(m)::text, -1) || ', "events" : ' || core.timeline(m) || '}'
  from app.messages m
  where m.id = core.decode_id(case get_message.channel when 'email' then 'em' when 'sms' then 'sm' end, get_message.id)
    and m.organisation_id = get_message.organisation_id
    -- The id of an email is not one of an SMS for being given the other prefix.
    and m.channel::text = get_message.channel
$$;

comment on function api.get_message is
  'null when the organisation has no such message, else the message object with its events as JSON text (interface 4.3). channel: email or sms.';
