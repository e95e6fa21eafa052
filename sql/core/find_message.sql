create function core.find_message(message text)
returns app.messages
language plpgsql stable
as $$
declare
  v_message app.messages;
begin
  select m.* into v_message
  from app.messages m
  where m.id = core.decode_id('em', message) and m.channel = 'email'
    or m.id = core.decode_id('sm', message) and m.channel = 'sms';
  if v_message.id is null then
    raise exception 'there is no message %', coalesce(quote_literal(message), 'null')
      using hint = 'select id, status, "to" from ops.messages limit 20';
  end if;
  return v_message;
end
$$;

comment on function core.find_message is 'The message that an operator named; raises one sentence when there is none.';
