-- Types that several topics share. Types of one topic are in its file.

create type app.mode as enum ('live', 'test');
comment on type app.mode is 'What a key may do: live keys send, test keys simulate.';

create type app.channel as enum ('email', 'sms');
comment on type app.channel is 'How a message reaches its recipient.';

create type app.class as enum ('transactional', 'marketing');
comment on type app.class is 'Marketing needs consent or an unsubscribe link; transactional messages do not.';

create type app.message_status as enum (
  'scheduled', 'queued', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'expired', 'rejected'
);
comment on type app.message_status is 'The status of a message; src/docs/email.md and src/docs/sms.md explain each.';

create type app.event_type as enum (
  'queued', 'scheduled', 'sent', 'deferred', 'delivered', 'bounced', 'complained', 'failed',
  'expired', 'rejected', 'opted_out'
);
comment on type app.event_type is 'What can happen to a message.';

create domain app.error_code as text
  constraint error_code_is_documented check (value in (
    'consent_missing', 'domain_not_verified', 'expired', 'hard_bounce', 'network_rejected',
    'opt_out_footer_missing', 'opted_out', 'org_suspended', 'outside_sending_hours', 'provider_rejected',
    'provider_unavailable', 'recipient_suppressed', 'soft_bounce'
  ));
comment on domain app.error_code is 'Why a message was not delivered. The errors page (src/docs) documents each code.';
