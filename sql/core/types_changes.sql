-- Changes of messages, for webhook events and reports.

create type core.message_change as (
  message_id uuid,
  organisation_id uuid,
  change app.event_type
);
comment on type core.message_change is 'A change of a message that reports count and webhook events may report.';

create type core.unsummed_change as (
  message_id uuid,
  change app.event_type,
  occurred_at timestamptz
);
comment on type core.unsummed_change is 'One change of a row of app.status_changes.';

create type core.counted_change as (
  day date,
  organisation_id uuid,
  channel app.channel,
  class app.class,
  tags text[],
  change app.event_type,
  units integer,
  error_code text,
  error_message text,
  latency interval
);
comment on type core.counted_change is 'A change of a message with what the reports sum it by.';
