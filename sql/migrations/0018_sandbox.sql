create table app.sandbox_messages (
  message_id uuid not null,
  copy smallint not null,
  kind text not null
    constraint sandbox_messages_kind check (kind in ('email', 'sms', 'reply')),
  attempts integer not null default 1,
  reports jsonb not null,
  taken_at timestamptz not null,
  due_at timestamptz,
  primary key (message_id, copy)
);
create index sandbox_messages_due_at on app.sandbox_messages (due_at) where due_at is not null;
comment on table app.sandbox_messages is
  'Messages that the sandbox accepted, and the reports that it will make about them.';
comment on column app.sandbox_messages.copy is
  'Of an email: the number of the copy, or 0 for one email to all recipients. Of an SMS: the number of the part, or 0 for the reply to it.';
comment on column app.sandbox_messages.kind is
  'What it reports: receipts of an email, receipts of a part of an SMS, or the reply to an SMS.';
comment on column app.sandbox_messages.due_at is 'When it reports; null afterwards.';
