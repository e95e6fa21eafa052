create view ops.messages as
select
  core.encode_id(case m.channel when 'email' then 'em' else 'sm' end, m.id) as id,
  m.status,
  m.mode,
  m.class,
  core.encode_id('org', o.id) as organisation,
  m.from_address as "from",
  m.to_address as "to",
  m.subject,
  m.tags,
  m.segments,
  m.credits,
  m.attempts,
  m.provider,
  m.error_code,
  m.error_message,
  m.created_at,
  m.scheduled_at,
  m.sent_at,
  m.delivered_at
from app.messages m
-- An organisation is found here first, or the id as it is shown would be made of each message.
join app.organisations o on o.id = m.organisation_id
order by m.id desc;

comment on view ops.messages is 'All messages, newest first; add a limit.';
