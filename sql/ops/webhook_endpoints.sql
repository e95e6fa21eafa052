create view ops.webhook_endpoints as
select
  core.encode_id('we', p.id) as id,
  core.encode_id('org', p.organisation_id) as organisation,
  p.url,
  p.event_types,
  case when p.disabled_at is not null then 'disabled' when p.failing_since is not null then 'failing' else 'enabled' end as state,
  case when p.disabled_at is null then w.waiting else 0 end as waiting,
  case when p.disabled_at is null then n.next_attempt_at end as next_attempt_at,
  a.last_delivered_at,
  p.failing_since,
  p.last_error,
  p.disabled_at,
  case when p.disabled_at is not null then coalesce(p.disabled_reason, 'failing') end as disabled_reason,
  case when p.old_secret_until > core.now() then p.old_secret_until end as old_secret_until,
  p.created_at
from app.webhook_endpoints p
cross join lateral (
  select count(*) as waiting
  from (select from app.webhook_deliveries d where d.endpoint_id = p.id limit 10000) d
) w
left join lateral (
  select d.due_at as next_attempt_at
  from app.webhook_deliveries d
  where d.endpoint_id = p.id
  order by d.due_at
  limit 1
) n on true
left join lateral (
  select t.started_at as last_delivered_at
  from app.webhook_attempts t
  where t.endpoint_id = p.id and t.error is null
  order by t.event_id desc
  limit 1
) a on true;

comment on view ops.webhook_endpoints is 'Webhook endpoints: state, waiting deliveries and last success.';

comment on column ops.webhook_endpoints.id is 'The endpoint''s ID, we_….';
comment on column ops.webhook_endpoints.organisation is 'The organisation''s ID, org_….';
comment on column ops.webhook_endpoints.url is 'The URL that events are posted to.';
comment on column ops.webhook_endpoints.event_types is 'The event types that the endpoint receives.';
comment on column ops.webhook_endpoints.state is
  'enabled, failing (deliveries are retried) or disabled (events are recorded, not delivered).';
comment on column ops.webhook_endpoints.waiting is 'Number of waiting deliveries, counted up to 10,000.';
comment on column ops.webhook_endpoints.next_attempt_at is 'When the next waiting delivery is due; null if none waits.';
comment on column ops.webhook_endpoints.last_delivered_at is 'When the newest delivered event was delivered; null if none is stored.';
comment on column ops.webhook_endpoints.failing_since is
  'When the first attempt failed since the last success; null if none has.';
comment on column ops.webhook_endpoints.last_error is 'The error of the last failed attempt.';
comment on column ops.webhook_endpoints.disabled_at is 'When the endpoint was disabled; null while it is not.';
comment on column ops.webhook_endpoints.disabled_reason is 'failing, or the reason that the operator gave.';
comment on column ops.webhook_endpoints.old_secret_until is
  'Until when events are also signed with the old secret; null if there is none.';
comment on column ops.webhook_endpoints.created_at is 'When the endpoint was created.';
