create function core.event_type(channel app.channel, change app.event_type)
returns app.webhook_event_type
language sql immutable
as $$
  select case channel
    when 'email' then case change
      when 'sent' then 'email.sent'::app.webhook_event_type
      when 'delivered' then 'email.delivered'
      when 'bounced' then 'email.bounced'
      when 'complained' then 'email.complained'
      when 'failed' then 'email.failed'
      when 'expired' then 'email.failed'
      when 'rejected' then 'email.failed'
    end
    when 'sms' then case change
      when 'sent' then 'sms.sent'::app.webhook_event_type
      when 'delivered' then 'sms.delivered'
      when 'failed' then 'sms.failed'
      when 'expired' then 'sms.failed'
      when 'rejected' then 'sms.failed'
      when 'opted_out' then 'sms.opted_out'
    end
  end
$$;

comment on function core.event_type is
  'Returns the type of the webhook event that reports a change of a message; null when none does.';
