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
-- The limit makes the plan look up each message by its ID.
cross join lateral (select m.* from app.messages m where m.id = s.id limit 1) m
order by m.id;

comment on view ops.stuck_messages is
  'Live messages that have waited for more than a minute. Counted from when they were queued or scheduled for; the oldest comes first. ops.why(id) returns the reason. Messages that the sandbox holds on purpose are not listed.';

comment on column ops.stuck_messages.id is 'The message ID, em_… or sm_…, for ops.why and ops.retry_message.';
comment on column ops.stuck_messages.organisation is 'The organisation''s ID, org_….';
comment on column ops.stuck_messages."to" is 'The addresses of the field to, separated by ", ", or the number.';
comment on column ops.stuck_messages.attempts is 'Number of attempts to send the message.';
comment on column ops.stuck_messages.created_at is 'When the message was accepted.';
comment on column ops.stuck_messages.scheduled_at is 'The scheduled time of an SMS; null if it is sent immediately.';
comment on column ops.stuck_messages.age is 'How long the message has waited.';
