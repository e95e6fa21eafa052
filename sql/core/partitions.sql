create function core.partitions()
returns table (data text, parent text, name text, relation oid, span_from timestamptz, span_to timestamptz, expires_at timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
-- An interval of a month or a day depends on the session's time zone.
set timezone = 'UTC'
as $$
  select p.data, p.parent, p.name, p.relation, p.span_from, s.span_to, s.span_to + p.kept
  from (
    select k.data, k.parent, k.kept, c.relname::text as name, c.oid as relation,
      to_timestamp(rpad(substr(c.relname, length(k.parent) + 2), 10, '_01'), 'YYYY_MM_DD') as span_from,
      case length(c.relname) - length(k.parent) when 8 then interval '1 month' else interval '1 day' end as span
    from (
      select t.data, t.parent, make_interval(days => r.days) as kept
      from app.retention r
      join (values
        ('messages', 'messages'), ('messages', 'events'), ('messages', 'message_terms'), ('bodies', 'bodies'),
        ('webhooks', 'webhook_events'), ('webhooks', 'webhook_attempts')
      ) t (data, parent) on t.data = r.data
      union all
      -- Keys are kept for 24 hours; the rest covers the day of the first request and running replays.
      select 'idempotency keys', 'idempotency_keys', interval '3 days'
    ) k
    join pg_catalog.pg_inherits i on i.inhparent = format('app.%I', k.parent)::regclass
    join pg_catalog.pg_class c on c.oid = i.inhrelid
  ) p
  cross join lateral (select p.span_from + p.span as span_to) s
$$;

comment on function core.partitions is
  'Returns the partitions of all partitioned tables, the time span of each, and when it may be dropped.';
