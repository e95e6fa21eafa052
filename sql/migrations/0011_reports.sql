-- Sums from which reports are read, so that no report reads messages. The clock keeps them up to date.

create table app.status_changes (
  message_id uuid not null,
  change app.event_type not null,
  occurred_at timestamptz not null
-- Returning empty pages to the file system takes a lock that every accept would wait for.
) with (vacuum_truncate = off);
comment on table app.status_changes is
  'Changes of live messages that are not in the sums yet: written with each change, deleted once summed.';
comment on column app.status_changes.change is 'queued means accepted, also for a scheduled message.';

create table app.daily_volume (
  day date not null,
  organisation_id uuid not null,
  channel app.channel not null,
  class app.class not null,
  tag text,
  accepted bigint not null,
  sent bigint not null,
  delivered bigint not null,
  bounced bigint not null,
  complained bigint not null,
  failed bigint not null,
  expired bigint not null,
  rejected bigint not null,
  constraint daily_volume_one_row unique nulls not distinct (day, organisation_id, channel, class, tag)
);
create index daily_volume_organisation_id on app.daily_volume (organisation_id, day);
create index daily_volume_all_tags on app.daily_volume (day) where tag is null;
comment on table app.daily_volume is
  'Live messages without sandbox messages, by the UTC day on which they were accepted, and their outcomes so far. A message counts in each outcome that it ever had, for example in delivered and in complained.';
comment on column app.daily_volume.tag is
  'null: all messages, with tags or without. A message with several tags counts in each of them.';

create table app.daily_latencies (
  day date not null,
  organisation_id uuid,
  channel app.channel not null,
  stage app.event_type not null
    constraint daily_latencies_stage check (stage in ('sent', 'delivered')),
  bucket smallint not null,
  messages bigint not null,
  constraint daily_latencies_one_row unique nulls not distinct (organisation_id, day, channel, stage, bucket)
);
comment on table app.daily_latencies is
  'How long live messages took from queued (a scheduled one from its time) to sent and to delivered, by the UTC day on which they were accepted.';
comment on column app.daily_latencies.organisation_id is 'null: all organisations together.';
comment on column app.daily_latencies.bucket is
  'Bucket n holds times up to 2 ^ (n / 4) milliseconds. There are four for each doubling, so a percentile is at most 19 % too high.';

create table app.daily_bounces (
  day date not null,
  organisation_id uuid not null,
  channel app.channel not null,
  code app.error_code not null,
  reason text not null
    constraint daily_bounces_reason_length check (length(reason) <= 200),
  messages bigint not null,
  primary key (day, organisation_id, channel, code, reason)
);
comment on table app.daily_bounces is
  'Why live messages bounced, failed or expired, by the UTC day on which they were accepted.';
comment on column app.daily_bounces.reason is
  'The provider''s text without addresses, numbers and ids, which differ from message to message.';

create table app.table_sizes (
  day date not null,
  name text not null
    constraint table_sizes_name_length check (length(name) <= 200),
  bytes bigint not null,
  rows bigint not null,
  primary key (day, name)
);
comment on table app.table_sizes is 'The size of each table by UTC day, with indexes. Partitions count for their table.';
comment on column app.table_sizes.rows is 'An estimate by Postgres.';
