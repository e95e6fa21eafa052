create view ops.messages as
select
  core.message_id(m.channel, m.id) as id,
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
-- The join lets a filter on organisation find the organisation first; otherwise its ID would be encoded for
-- every message.
join app.organisations o on o.id = m.organisation_id
order by m.id desc;

comment on view ops.messages is
  'All messages, newest first. Always add a limit. To find the messages of one recipient or organisation, use ops.messages_of.';

comment on column ops.messages.id is 'The message ID, em_… or sm_…; to find one message quickly use ops.messages_of.';
comment on column ops.messages.status is 'The status, as the API shows it.';
comment on column ops.messages.mode is 'live or test.';
comment on column ops.messages.class is 'transactional or marketing.';
comment on column ops.messages.organisation is 'The organisation''s ID, org_….';
comment on column ops.messages."from" is 'The sender''s address, number or sender ID.';
comment on column ops.messages."to" is 'The addresses of the field to, separated by ", ", or the number.';
comment on column ops.messages.subject is 'The subject of an email; null for SMS.';
comment on column ops.messages.tags is 'The tags that the caller set.';
comment on column ops.messages.segments is 'Number of segments of an SMS; null for email.';
comment on column ops.messages.credits is 'Prepaid segments that the SMS cost; null for email.';
comment on column ops.messages.attempts is 'Number of attempts to send the message.';
comment on column ops.messages.provider is 'The provider of the attempts; null before the first one.';
comment on column ops.messages.error_code is 'The error code of a message that failed, bounced or was rejected; else null.';
comment on column ops.messages.error_message is 'The error as text, often the provider''s.';
comment on column ops.messages.created_at is 'When the message was accepted.';
comment on column ops.messages.scheduled_at is 'The scheduled time of an SMS; null if it is sent immediately.';
comment on column ops.messages.sent_at is 'When a provider accepted the message; null before that.';
comment on column ops.messages.delivered_at is 'When the message was delivered; null unless the provider reported it.';
