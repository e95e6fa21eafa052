create view ops.retention as
select p.what, r.days, min(p.span_from) as kept_since, max(p.span_to) as made_until,
  count(*) as partitions, sum(pg_catalog.pg_total_relation_size(p.relation)) as bytes,
  min(p.expires_at) as next_drop_at,
  coalesce(sum(pg_catalog.pg_total_relation_size(p.relation))
    filter (where p.expires_at <= core.now() + interval '31 days'), 0) as expiring_bytes
from core.partitions() p
left join app.retention r on r.what = p.what
group by p.what, r.days;

comment on view ops.retention is
  'What is kept for how many days, and its size on disk. Shows from when on there is some and until when there are partitions for more. Messages are dropped by month, all else by day; ops.set_retention changes the days. The credit ledger, suppressions and consents are never dropped.';

comment on column ops.retention.what is 'messages (with timelines), bodies, webhooks (events and attempts) or idempotency keys.';
comment on column ops.retention.days is 'For how many days it is kept; null where that is fixed, at 24 hours.';
comment on column ops.retention.kept_since is 'From when on there is some.';
comment on column ops.retention.made_until is 'Until when there are partitions for more.';
comment on column ops.retention.partitions is 'How many partitions there are.';
comment on column ops.retention.bytes is 'How much they take on disk; pg_size_pretty(bytes) is easier to read.';
comment on column ops.retention.next_drop_at is 'When the oldest partition is dropped.';
comment on column ops.retention.expiring_bytes is 'How much on disk is dropped within 31 days.';
