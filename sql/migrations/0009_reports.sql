-- What reports are read from: sums that the clock keeps, so that no report has to look at messages.

create table app.changes (
  message_id uuid not null,
  change app.event_type not null,
  at timestamptz not null
-- Giving pages back takes a lock that every accept would wait for.
) with (vacuum_truncate = off);
comment on table app.changes is
  'What happened to live messages since the sums were kept last: written with each change, gone once it is in the sums.';
comment on column app.changes.change is 'queued stands for accepted, also of a scheduled message.';

create table app.daily_volume (
  day date not null,
  organisation_id uuid not null,
  channel app.channel not null,
  class app.class not null,
  tag text not null,
  accepted bigint not null,
  sent bigint not null,
  delivered bigint not null,
  bounced bigint not null,
  complained bigint not null,
  failed bigint not null,
  expired bigint not null,
  rejected bigint not null,
  primary key (day, organisation_id, channel, class, tag)
);
create index daily_volume_organisation_id on app.daily_volume (organisation_id, day);
create index daily_volume_all_tags on app.daily_volume (day) where tag = '';
comment on table app.daily_volume is
  'Live messages, without rehearsals, by the UTC day on which they were accepted, and what has become of them so far. A message counts in each outcome that it ever had: in delivered and in complained.';
comment on column app.daily_volume.tag is 'Empty: all messages. A message with several tags counts in each of them.';

create table app.daily_latencies (
  day date not null,
  organisation_id uuid not null,
  channel app.channel not null,
  stage app.event_type not null
    constraint daily_latencies_stage check (stage in ('sent', 'delivered')),
  bucket smallint not null,
  messages bigint not null,
  primary key (organisation_id, day, channel, stage, bucket)
);
comment on table app.daily_latencies is
  'How long live messages took from queued (a scheduled one from its time) to sent and to delivered, by the UTC day on which they were accepted.';
comment on column app.daily_latencies.organisation_id is 'All bits zero: all organisations together.';
comment on column app.daily_latencies.bucket is
  'n: at most 2 ^ (n / 4) milliseconds, and more than one bucket less. Four to a doubling keep a percentile within 19 %.';

create table app.daily_bounces (
  day date not null,
  organisation_id uuid not null,
  channel app.channel not null,
  code text not null,
  reason text not null
    constraint daily_bounces_reason_length check (length(reason) <= 200),
  messages bigint not null,
  primary key (day, organisation_id, channel, code, reason)
);
comment on table app.daily_bounces is
  'Why live messages bounced, failed or expired, by the UTC day on which they were accepted.';
comment on column app.daily_bounces.reason is
  'What the provider said, without what differs from message to message: addresses, numbers and ids.';
