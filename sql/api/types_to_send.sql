-- Messages, notices and events that workers send, and emails whose receipts they poll.

create type api.email_to_send as (
  id uuid,
  organisation_id uuid,
  attempt integer,
  started_at timestamptz,
  is_ambiguous boolean,
  ambiguous_since timestamptz,
  is_sandbox boolean,
  domain text,
  mail_from_domain text,
  dkim_selector text,
  dkim_private_key text,
  from_address text,
  sender text,
  "to" text[],
  cc text[],
  bcc text[],
  recipients text[],
  reply_to text,
  subject text,
  html text,
  text text,
  headers jsonb,
  tags text[],
  class app.class,
  settled_recipients text[],
  large_bytes integer
);
comment on type api.email_to_send is 'An email with a started attempt.';
comment on column api.email_to_send.started_at is 'When this attempt started, by the service''s clock.';
comment on column api.email_to_send.ambiguous_since is 'null unless ambiguous: when the attempt started whose outcome is unknown';
comment on column api.email_to_send.is_sandbox is 'Whether it is sent to the sandbox beside a real provider.';
comment on column api.email_to_send.domain is 'The verified domain that it is sent with.';
comment on column api.email_to_send.mail_from_domain is 'The MAIL FROM domain.';
comment on column api.email_to_send.dkim_selector is 'null when the provider signs';
comment on column api.email_to_send.dkim_private_key is 'null when the provider signs; sealed';
comment on column api.email_to_send.settled_recipients is 'null unless the copies to some recipients are already sent or refused';
comment on column api.email_to_send.large_bytes is
  'How many bytes it adds to a worker''s total of large emails; 0 if it is not large.';
comment on column api.email_to_send.recipients is
  'The addresses of to, cc and bcc without display names, in lower case, each once.';
comment on column api.email_to_send.reply_to is 'null if replies go to the sender';
comment on column api.email_to_send.html is 'null if text only';
comment on column api.email_to_send.text is 'null if html only';
comment on column api.email_to_send.headers is 'null if there are none';

create type api.notice as (
  id uuid,
  kind app.notice_kind,
  detail jsonb,
  created_at timestamptz,
  organisation_id uuid,
  organisation_name text,
  owner_email text,
  attempt integer,
  started_at timestamptz,
  ambiguous_since timestamptz,
  dkim_selector text,
  dkim_private_key text
);
comment on type api.notice is 'A notice to an owner or a user, with a started attempt.';
comment on column api.notice.organisation_id is 'null for a link that signs in';
comment on column api.notice.organisation_name is 'null for a link that signs in';
comment on column api.notice.owner_email is 'The address to which it is sent.';
comment on column api.notice.ambiguous_since is 'null unless ambiguous: when the attempt started whose outcome is unknown';
comment on column api.notice.dkim_selector is 'null when the provider signs';
comment on column api.notice.dkim_private_key is 'null when the provider signs; sealed';

create type api.sent_email as (
  id uuid,
  domain text,
  mail_from_domain text,
  copies integer
);
comment on type api.sent_email is 'An email that a provider accepted and that has no final receipt.';
comment on column api.sent_email.domain is 'The verified domain that it was sent with.';
comment on column api.sent_email.mail_from_domain is 'The MAIL FROM domain.';
comment on column api.sent_email.copies is 'Number of copies sent: for marketing one for each recipient.';

create type api.sms_to_send as (
  id uuid,
  organisation_id uuid,
  attempt integer,
  started_at timestamptz,
  is_sandbox boolean,
  class app.class,
  sender text,
  recipient text,
  body text,
  segments integer,
  taken_parts text[]
);
comment on type api.sms_to_send is 'An SMS with a started attempt.';
comment on column api.sms_to_send.started_at is 'When this attempt started, by the service''s clock.';
comment on column api.sms_to_send.is_sandbox is 'Whether it is sent to the sandbox beside a real provider.';
comment on column api.sms_to_send.sender is 'A number in E.164 or an alphanumeric sender ID.';
comment on column api.sms_to_send.recipient is 'The number in E.164.';
comment on column api.sms_to_send.taken_parts is
  'Numbers, from 1, of the parts that the network accepted in earlier attempts, which must not be sent again.';

create type api.delivery as (
  endpoint_id uuid,
  event_id uuid,
  attempt integer,
  started_at timestamptz,
  is_failing boolean,
  url text,
  plain_secrets text[],
  sealed_secrets text[],
  body text
);
comment on type api.delivery is 'A webhook event to post to an endpoint now.';
comment on column api.delivery.attempt is 'Number of the attempt, from 1.';
comment on column api.delivery.started_at is 'When this attempt started, by the service''s clock.';
comment on column api.delivery.is_failing is 'Whether the endpoint''s last attempt failed.';
comment on column api.delivery.plain_secrets is 'Signing secrets that the service has not sealed yet. All secrets sign: two for 24 hours after a rotation.';
comment on column api.delivery.sealed_secrets is 'Signing secrets that SECRET_KEY has sealed, the newest first.';
