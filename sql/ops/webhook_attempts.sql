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
  a.response
from app.webhook_endpoints p
-- An endpoint's own are found in this order by the key; all of them there is no key for.
cross join lateral (
  select a.*
  from app.webhook_attempts a
  where a.endpoint_id = p.id
  order by a.event_id desc, a.started_at desc
) a;

comment on view ops.webhook_attempts is
  'Attempts to deliver webhook events: status, error, response. Endpoint by endpoint, of each the newest event first. Name an endpoint or an organisation, and a limit.';

comment on column ops.webhook_attempts.endpoint is 'The endpoint, we_….';
comment on column ops.webhook_attempts.organisation is 'The organisation''s id, org_….';
comment on column ops.webhook_attempts.event is 'The event, evt_….';
comment on column ops.webhook_attempts.attempt is '1 for the first; after a replay it counts on.';
comment on column ops.webhook_attempts.started_at is 'When the POST began.';
comment on column ops.webhook_attempts.duration_ms is 'How long it took, in milliseconds.';
comment on column ops.webhook_attempts.status is 'The HTTP status; null when there was no response.';
comment on column ops.webhook_attempts.error is 'Why it counts as failed; null when it arrived.';
comment on column ops.webhook_attempts.response is 'The first characters of the response body; null when there was no response.';
