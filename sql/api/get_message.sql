-- In plpgsql, here and in core.timeline, because an sql function would be planned anew at each call
-- (before Postgres 18), and the more partitions there are, the longer that takes.
create function api.get_message(organisation_id uuid, channel text, id text)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid := core.decode_id(case get_message.channel when 'email' then 'em' when 'sms' then 'sm' end, get_message.id);
  v_message app.messages;
begin
  select m.* into v_message
  from app.messages m
  where m.id = v_id
    and m.organisation_id = get_message.organisation_id
    -- The id of an email is not one of an SMS for being given the other prefix.
    and m.channel::text = get_message.channel;
  if not found then
    return null;
  end if;
  -- Text joined to text, so that the fields keep the order in which the interface lists them.
  return left(core.message_object(v_message)::text, -1) || ', "events" : ' || core.timeline(v_message) || '}';
end
$$;

comment on function api.get_message is
  'null when the organisation has no such message, else the message object with its events as JSON text (interface 4.3). channel: email or sms.';
