-- Email addresses that must not be sent to.

create type app.suppression_reason as enum ('hard_bounce', 'complaint', 'unsubscribe', 'manual');

create table app.suppressions (
  organisation_id uuid not null references app.organisations,
  id uuid not null,
  email text not null
    constraint suppressions_email_is_lower_case check (email = lower(email))
    constraint suppressions_email_length check (length(email) between 3 and 254),
  reason app.suppression_reason not null,
  other_reasons app.suppression_reason[] not null default '{}',
  message_id uuid,
  note text not null default ''
    constraint suppressions_note_length check (length(note) <= 2000),
  created_at timestamptz not null default now(),
  primary key (organisation_id, id),
  constraint suppressions_one_per_address unique (organisation_id, email)
);
comment on table app.suppressions is
  'Addresses that an organisation must not send to, with a copy of each hard bounce of its own.';
comment on column app.suppressions.other_reasons is
  'Further reasons. When reason is removed, one of them replaces it: whoever unsubscribed gets no marketing after a bounce is forgiven.';
comment on column app.suppressions.message_id is 'The message that led to the suppression; null when none did.';

create table app.hard_bounces (
  email text primary key
    constraint hard_bounces_email_is_lower_case check (email = lower(email))
    constraint hard_bounces_email_length check (length(email) between 3 and 254),
  message_id uuid,
  note text not null default ''
    constraint hard_bounces_note_length check (length(note) <= 2000),
  created_at timestamptz not null default now()
);
comment on table app.hard_bounces is 'Mailboxes that do not exist: suppressed for every organisation.';
comment on column app.hard_bounces.message_id is 'The message that bounced; null when an operator added the address.';

create table app.suppression_removals (
  organisation_id uuid not null references app.organisations,
  email text not null
    constraint suppression_removals_email_length check (length(email) between 3 and 254),
  tried_at timestamptz,
  primary key (organisation_id, email)
);
comment on table app.suppression_removals is
  'Addresses that the email provider must still remove from its own lists, for each domain of the organisation.';
comment on column app.suppression_removals.tried_at is 'When the last attempt began; null before the first.';
