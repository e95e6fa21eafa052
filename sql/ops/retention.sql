create view ops.retention as
select p.data, r.days, min(p.span_from) as kept_since, max(p.span_to) as made_until,
  count(*) as partitions, sum(pg_catalog.pg_total_relation_size(p.relation)) as bytes,
  min(p.expires_at) as next_drop_at,
  coalesce(sum(pg_catalog.pg_total_relation_size(p.relation))
    filter (where p.expires_at <= core.now() + interval '31 days'), 0) as expiring_bytes
from core.partitions() p
left join app.retention r on r.data = p.data
group by p.data, r.days;

comment on view ops.retention is
  'Retention periods in days, and the disk space of the data. Messages are dropped by month, everything else by day. ops.set_retention changes the periods. The credit ledger, suppressions and consents are never dropped.';

comment on column ops.retention.data is 'messages (with timelines), bodies, webhooks (events and attempts) or idempotency keys.';
comment on column ops.retention.days is
  'Retention period in days; null for idempotency keys, which are always kept for 24 hours.';
comment on column ops.retention.kept_since is 'Start of the oldest partition.';
comment on column ops.retention.made_until is 'End of the newest partition.';
comment on column ops.retention.partitions is 'Number of partitions.';
comment on column ops.retention.bytes is 'Size on disk in bytes; pg_size_pretty(bytes) makes it readable.';
comment on column ops.retention.next_drop_at is 'When the oldest partition will be dropped.';
comment on column ops.retention.expiring_bytes is 'Size of the partitions that will be dropped within 31 days, in bytes.';
