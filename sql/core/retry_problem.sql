create function core.retry_problem(m app.messages)
returns text
language sql stable
as $$
  select case
    when m.mode = 'test' then 'a test message is never sent to a provider'
    when m.status = 'failed' and m.channel = 'sms' then
      'a failed SMS cannot be retried, as it may have been refunded; send a new one'
    when m.status = 'scheduled' and m.scheduled_at > core.now() then
      format('the SMS is scheduled for %s and cannot be sent earlier', core.iso(m.scheduled_at))
    when m.status = 'failed' and not exists (select from app.bodies b where b.message_id = m.id) then
      'the body of the message has been deleted (ops.retention); send a new message'
    when m.status not in ('queued', 'scheduled') and (m.status <> 'failed' or m.sent_at is not null) then
      format('the message is %s; only a waiting message, or an email that failed before it was sent, can be retried',
        m.status)
  end
$$;

comment on function core.retry_problem is 'Returns why a message cannot be retried; null if it can.';
