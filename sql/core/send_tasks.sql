create function core.send_tasks(channel app.channel)
returns text[]
language sql immutable
as $$
  select case channel
    when 'email' then array['send_email', 'send_emails']
    when 'sms' then array['send_sms', 'send_sms_messages']
  end
$$;

comment on function core.send_tasks is
  'Returns the tasks that attempt messages of a channel: first that of one message, then that of several.';
