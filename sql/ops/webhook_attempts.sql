create view ops.webhook_attempts as
select
  core.encode_id('we', p.id) as endpoint,
  core.encode_id('org', p.organisation_id) as organisation,
  core.encode_id('evt', a.event_id) as event,
  a.attempt,
  a.started_at,
  a.duration_ms,
  a.status,
  a.error,
  a.answer
from app.webhook_endpoints p
-- An endpoint's own are found in this order by the key; all of them there is no key for.
cross join lateral (
  select a.*
  from app.webhook_attempts a
  where a.endpoint_id = p.id
  order by a.event_id desc, a.started_at desc
) a;

comment on view ops.webhook_attempts is
  'Every attempt to deliver a webhook event, with HTTP status, error, and how the answer began: endpoint by endpoint, of each the newest event first. Name an endpoint or an organisation, and a limit.';
