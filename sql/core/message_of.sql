create function core.message_of(organisation_id uuid, message text)
returns app.messages
language plpgsql stable
set enable_seqscan = off
as $$
declare
  v_message app.messages;
begin
  select m.* into v_message
  from app.messages m
  where m.id = coalesce(core.decode_id('em', message_of.message), core.decode_id('sm', message_of.message))
    and m.organisation_id = message_of.organisation_id
    -- The UUID of an email with the prefix of an SMS is not a valid ID.
    and core.message_id(m.channel, m.id) = message_of.message;
  if not found then
    perform core.refuse('not_found');
  end if;
  return v_message;
end
$$;

comment on function core.message_of is
  'Returns the message of an organisation with this ID. Refuses with not_found if it has none.';
