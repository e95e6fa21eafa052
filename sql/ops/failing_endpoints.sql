create view ops.failing_endpoints as
select
  core.encode_id('we', p.id) as id,
  core.encode_id('org', p.organisation_id) as organisation,
  p.url,
  case when p.disabled_at is not null then 'disabled' else 'failing' end as state,
  p.failing_since,
  p.last_error,
  p.warned_at,
  case when p.disabled_at is null then p.failing_since + interval '3 days' end as disables_at,
  p.disabled_at,
  case when p.disabled_at is not null then coalesce(p.disabled_reason, 'failing') end as disabled_reason,
  core.missed_events(p, 10000) as missed,
  p.created_at,
  case
    when p.disabled_at is not null
      then format('once it responds 2xx: select ops.enable_webhook_endpoint(%L, replay => true)', core.encode_id('we', p.id))
    else format('it must respond 2xx within 10 s; then: select ops.send_test_event(%L, %L)', core.encode_id('we', p.id), p.event_types[1])
  end as hint
from app.webhook_endpoints p
where p.failing_since is not null or p.disabled_at is not null;

comment on view ops.failing_endpoints is 'Webhook endpoints that fail or are disabled, with a hint for each.';

comment on column ops.failing_endpoints.id is 'The endpoint''s ID, we_….';
comment on column ops.failing_endpoints.organisation is 'The organisation''s ID, org_….';
comment on column ops.failing_endpoints.url is 'The URL of the endpoint.';
comment on column ops.failing_endpoints.state is 'failing or disabled.';
comment on column ops.failing_endpoints.failing_since is
  'When the first attempt failed since the last success; null if none has.';
comment on column ops.failing_endpoints.last_error is 'The error of the last failed attempt.';
comment on column ops.failing_endpoints.warned_at is 'When the owner was notified, which happens after a day; null before that.';
comment on column ops.failing_endpoints.disables_at is 'When the endpoint will be disabled unless a delivery succeeds; null once it is disabled.';
comment on column ops.failing_endpoints.disabled_at is 'When the endpoint was disabled; null while it is not.';
comment on column ops.failing_endpoints.disabled_reason is 'failing, or the reason that the operator gave.';
comment on column ops.failing_endpoints.missed is 'Number of undelivered events of its types since then, counted up to 10,000.';
comment on column ops.failing_endpoints.created_at is 'When the endpoint was created.';
comment on column ops.failing_endpoints.hint is 'What to do, as a statement where one helps.';
