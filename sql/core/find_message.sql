create function core.find_message(message text)
returns app.messages
language plpgsql stable
as $$
declare
  v_ids uuid[];
  v_message app.messages;
begin
  if core.means_person(message) then
    -- One more than core.check_is_one shows.
    v_ids := core.person_messages(core.check_person(message), null, at_most => 11);
  else
    v_ids := array(
      select m.id
      from app.messages m
      where m.id = core.decode_id('em', message) and m.channel = 'email'
        or m.id = core.decode_id('sm', message) and m.channel = 'sms');
  end if;
  perform core.check_is_one('message', message, array(
    select format('%s (%s)', core.message_id(m.channel, m.id), m.status)
    from app.messages m
    where m.id = any (v_ids)
    order by m.id desc), 'select id, status, "to" from ops.messages limit 20');
  select m.* into v_message from app.messages m where m.id = v_ids[1];
  return v_message;
end
$$;

comment on function core.find_message is
  'Returns the message with this ID, or to this address or number. Raises an error if there is none, or several.';
