create function core.sample_message(type app.webhook_event_type)
returns app.messages
language sql volatile
as $$
  select jsonb_populate_record(null::app.messages,
    jsonb_build_object(
      'id', core.new_id(core.now()),
      'channel', t.channel,
      'class', case when t.change in ('complained', 'opted_out') then 'marketing' else 'transactional' end,
      -- A person who opts out has received the SMS before.
      'status', case t.change when 'opted_out' then 'delivered' else t.change end,
      'tags', array['test'],
      'created_at', core.now() - interval '3 seconds',
      'sent_at', case when type <> 'email.failed' then core.now() - interval '2 seconds' end,
      'delivered_at', case when t.change in ('delivered', 'complained', 'opted_out') then core.now() - interval '1 second' end)
    || case t.channel
      when 'email' then jsonb_build_object(
        'from_address', 'sender@sandbox.postgram.test',
        'to_address', case t.change when 'bounced' then 'bounce' when 'complained' then 'complaint'
          when 'failed' then 'reject' else 'delivered' end || '@sandbox.postgram.test',
        'subject', 'A test event')
      -- A number reserved for fiction (Ofcom).
      else '{"from_address": "Postgram", "to_address": "+447700900000", "segments": 1, "credits": 1}'
    end
    || case type
      when 'email.bounced' then '{"error_code": "hard_bounce", "error_message": "550 5.1.1 There is no such mailbox"}'
      when 'email.failed' then '{"error_code": "provider_rejected", "error_message": "The provider does not take this message"}'
      when 'sms.failed' then '{"error_code": "network_rejected", "error_message": "The network does not reach this number"}'
      else '{}'
    end::jsonb)
  from (select split_part(type::text, '.', 1) as channel, split_part(type::text, '.', 2) as change) t
$$;

comment on function core.sample_message is
  'Returns a sample message for a test event of this type. Its ID belongs to no message.';
