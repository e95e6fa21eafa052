create view ops.retention as
select p.what, r.days, min(p.span_from) as kept_since, max(p.span_to) as made_until,
  count(*) as partitions, sum(pg_catalog.pg_total_relation_size(p.relation)) as bytes
from core.partitions() p
left join app.retention r on r.what = p.what
group by p.what, r.days;

comment on view ops.retention is
  'What is kept for how many days (ops.set_retention), from when on there is some, until when there is room for more, and how much it takes on disk. Messages are dropped by month, all else by day. The credit ledger, suppressions and consents are never dropped.';
