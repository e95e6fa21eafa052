-- In plpgsql, here and in core.timeline: before Postgres 18 a function in SQL is planned at each call, which
-- takes longer the more partitions there are.
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
    -- The UUID of an email with the prefix of an SMS is not a valid ID.
    and m.channel::text = get_message.channel;
  if not found then
    return null;
  end if;
  -- Concatenated as text, so that the fields keep the order of the API reference.
  return left(core.message_object(v_message)::text, -1) || ', "events" : ' || core.timeline(v_message) || '}';
end
$$;

comment on function api.get_message is
  'Returns the message object with its events as JSON text; null if the organisation has no such message. channel: email or sms.';
