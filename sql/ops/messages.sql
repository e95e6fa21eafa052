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
-- An organisation is found here first, or the id as it is shown would be made of each message.
join app.organisations o on o.id = m.organisation_id
order by m.id desc;

comment on view ops.messages is
  'All messages, newest first. Add a limit; ops.messages_of finds those of one recipient or organisation.';

comment on column ops.messages.id is 'em_… or sm_…; ops.messages_of finds one by it at once.';
comment on column ops.messages.status is 'As GET /v1/emails/{id} shows it.';
comment on column ops.messages.mode is 'live or test.';
comment on column ops.messages.class is 'transactional or marketing.';
comment on column ops.messages.organisation is 'The organisation''s id, org_….';
comment on column ops.messages."from" is 'The sender''s address, number or name.';
comment on column ops.messages."to" is 'The addresses in to, with ", " between them, or the number.';
comment on column ops.messages.subject is 'Of an email; null for SMS.';
comment on column ops.messages.tags is 'The tags that the caller gave it.';
comment on column ops.messages.segments is 'How many an SMS has; null for email.';
comment on column ops.messages.credits is 'Prepaid segments that it took; null for email.';
comment on column ops.messages.attempts is 'How often it was handed over.';
comment on column ops.messages.provider is 'Who it was handed to; null before the first attempt.';
comment on column ops.messages.error_code is 'Why it failed, bounced or was rejected; null if it did not.';
comment on column ops.messages.error_message is 'The same in words, often the provider''s.';
comment on column ops.messages.created_at is 'When it was accepted.';
comment on column ops.messages.scheduled_at is 'When an SMS is to be sent; null for at once.';
comment on column ops.messages.sent_at is 'When a provider took it; null until then.';
comment on column ops.messages.delivered_at is 'When it arrived; null unless that is known.';
