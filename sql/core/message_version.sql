create function core.message_version(m app.messages)
returns text
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return md5(row(m.status, m.attempts, m.attempt_started_at, m.error_code, m.sent_at, m.delivered_at,
    (select e.id from app.events e where e.message_id = m.id order by e.id desc limit 1))::text);
end
$$;

comment on function core.message_version is 'Returns a text that differs once a message or its timeline has changed.';
