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
-- Ordered within each endpoint, as the key is: no key orders the attempts of all endpoints.
cross join lateral (
  select a.*
  from app.webhook_attempts a
  where a.endpoint_id = p.id
  order by a.event_id desc, a.started_at desc
) a;

comment on view ops.webhook_attempts is
  'Attempts to deliver webhook events: status, error and response. Within each endpoint the newest event comes first. Always filter by endpoint or organisation and add a limit.';

comment on column ops.webhook_attempts.endpoint is 'The endpoint''s ID, we_….';
comment on column ops.webhook_attempts.organisation is 'The organisation''s ID, org_….';
comment on column ops.webhook_attempts.event is 'The event''s ID, evt_….';
comment on column ops.webhook_attempts.attempt is 'Number of the attempt, from 1; a replay continues the count.';
comment on column ops.webhook_attempts.started_at is 'When the POST request started.';
comment on column ops.webhook_attempts.duration_ms is 'Duration of the request in milliseconds.';
comment on column ops.webhook_attempts.status is 'The HTTP status of the response; null without a response.';
comment on column ops.webhook_attempts.error is 'Why the attempt failed; null if it succeeded.';
comment on column ops.webhook_attempts.response is 'The first characters of the response body; null without a response.';
