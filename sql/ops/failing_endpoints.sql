create view ops.failing_endpoints as
select
  core.encode_id('we', p.id) as id,
  core.encode_id('org', p.organisation_id) as organisation,
  p.url,
  case when p.disabled_at is not null then 'disabled' else 'failing' end as state,
  p.failing_since,
  p.last_error,
  p.warned_at,
  -- Interface 6.4.
  case when p.disabled_at is null then p.failing_since + interval '3 days' end as ends_at,
  p.disabled_at,
  case when p.disabled_at is not null then coalesce(p.disabled_reason, 'failing') end as disabled_reason,
  m.missed,
  p.created_at,
  case
    when p.disabled_at is not null
      then format('once it answers 2xx: select ops.enable_webhook_endpoint(%L, replay => true)', core.encode_id('we', p.id))
    else format('it must answer 2xx within 10 seconds; then: select ops.send_test_event(%L, %L)', core.encode_id('we', p.id), p.event_types[1])
  end as cure
from app.webhook_endpoints p
cross join lateral (
  select count(*) as missed
  from (
    select from app.webhook_events e
    where e.organisation_id = p.organisation_id and e.type = any (p.event_types) and e.message_id is not null
      -- What it began to fail with occurred before, by the time that the attempt took.
      and e.id >= core.first_id_at(
        greatest(core.now() - interval '30 days', least(p.failing_since - interval '1 minute', p.disabled_at)))
      and not exists (
        select from app.webhook_attempts a
        where a.endpoint_id = p.id and a.event_id = e.id and a.error is null)
    limit 10000
  ) e
) m
where p.failing_since is not null or p.disabled_at is not null;

comment on view ops.failing_endpoints is
  'Webhook endpoints that fail or are disabled, and what to do. Shows since when, the last error, when a failing one will be disabled (ends_at) and how many events have not arrived since then (counted to 10 000).';

comment on column ops.failing_endpoints.id is 'The endpoint''s id, we_….';
comment on column ops.failing_endpoints.organisation is 'The organisation''s id, org_….';
comment on column ops.failing_endpoints.url is 'Where its events go.';
comment on column ops.failing_endpoints.state is 'failing or disabled.';
comment on column ops.failing_endpoints.failing_since is 'When the first attempt failed since the last that arrived; null if none has.';
comment on column ops.failing_endpoints.last_error is 'What the last attempt that failed came to.';
comment on column ops.failing_endpoints.warned_at is 'When its owner was told; null before a day has passed.';
comment on column ops.failing_endpoints.ends_at is 'When it will be disabled unless something arrives; null when it is.';
comment on column ops.failing_endpoints.disabled_at is 'Since when it is disabled; null while it is not.';
comment on column ops.failing_endpoints.disabled_reason is 'failing, or the words of the operator who disabled it.';
comment on column ops.failing_endpoints.missed is 'Events of its types that have not arrived since, counted to 10 000.';
comment on column ops.failing_endpoints.created_at is 'When it was made.';
comment on column ops.failing_endpoints.cure is 'What to do, as a statement where one helps.';
