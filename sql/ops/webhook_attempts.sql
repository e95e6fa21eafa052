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
join app.webhook_attempts a on a.endpoint_id = p.id
order by a.event_id desc, a.started_at desc;

comment on view ops.webhook_attempts is
  'Every attempt to deliver a webhook event: HTTP status, error, and how the answer began; the newest event first, of each its last attempt first; add a limit.';
