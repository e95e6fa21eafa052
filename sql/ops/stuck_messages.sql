create view ops.stuck_messages as
select
  core.message_id(m.channel, m.id) as id,
  core.encode_id('org', m.organisation_id) as organisation,
  m.to_address as "to",
  m.attempts,
  m.created_at,
  m.scheduled_at,
  core.now() - coalesce(m.scheduled_at, m.created_at) as age
from core.stuck_messages() s (id)
join app.messages m on m.id = s.id
order by m.id;

comment on view ops.stuck_messages is
  'Live messages that have waited for more than a minute. Queued for that long, or scheduled for more than a minute ago, oldest first; ops.why(id) says why. Messages that the sandbox keeps waiting are not listed.';

comment on column ops.stuck_messages.id is 'em_… or sm_…, for ops.why and ops.retry_message.';
comment on column ops.stuck_messages.organisation is 'The organisation''s id, org_….';
comment on column ops.stuck_messages."to" is 'The addresses in to, with ", " between them, or the number.';
comment on column ops.stuck_messages.attempts is 'How often it was handed over.';
comment on column ops.stuck_messages.created_at is 'When it was accepted.';
comment on column ops.stuck_messages.scheduled_at is 'When an SMS was to be sent; null for at once.';
comment on column ops.stuck_messages.age is 'For how long it waits.';
