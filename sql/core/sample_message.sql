create function core.sample_message(type app.webhook_event_type)
returns app.messages
language plpgsql volatile
as $$
declare
  v_change constant text := split_part(type::text, '.', 2);
  v_message app.messages;
begin
  v_message.id := core.new_id(core.now());
  v_message.channel := split_part(type::text, '.', 1);
  v_message.class := case when v_change in ('complained', 'opted_out') then 'marketing' else 'transactional' end;
  -- A person who opts out has received the SMS before.
  v_message.status := case v_change when 'opted_out' then 'delivered' else v_change end;
  v_message.tags := '{test}';
  v_message.created_at := core.now() - interval '3 seconds';
  if type <> 'email.failed' then
    v_message.sent_at := core.now() - interval '2 seconds';
  end if;
  if v_change in ('delivered', 'complained', 'opted_out') then
    v_message.delivered_at := core.now() - interval '1 second';
  end if;
  if v_message.channel = 'email' then
    v_message.from_address := 'sender@sandbox.postgram.test';
    v_message.to_address := case v_change when 'bounced' then 'bounce' when 'complained' then 'complaint'
      when 'failed' then 'reject' else 'delivered' end || '@sandbox.postgram.test';
    v_message.subject := 'A test event';
  else
    v_message.from_address := 'Postgram';
    -- A number reserved for fiction (Ofcom).
    v_message.to_address := '+447700900000';
    v_message.segments := 1;
    v_message.credits := 1;
  end if;
  case type
    when 'email.bounced' then
      v_message.error_code := 'hard_bounce';
      v_message.error_message := '550 5.1.1 There is no such mailbox';
    when 'email.failed' then
      v_message.error_code := 'provider_rejected';
      v_message.error_message := 'The provider does not take this message';
    when 'sms.failed' then
      v_message.error_code := 'network_rejected';
      v_message.error_message := 'The network does not reach this number';
    else
  end case;
  return v_message;
end
$$;

comment on function core.sample_message is
  'Returns a sample message for a test event of this type. Its ID belongs to no message.';
