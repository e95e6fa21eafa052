create view ops.webhook_events as
select
  core.encode_id('evt', e.id) as id,
  core.encode_id('org', o.id) as organisation,
  e.type,
  core.encode_id(case when e.type::text like 'email.%' then 'em' else 'sm' end, e.message_id) as message,
  e.occurred_at,
  e.body
from app.organisations o
-- Ordered within each organisation, so that an index finds its events however many others there are.
cross join lateral (
  select e.*
  from app.webhook_events e
  where e.organisation_id = o.id
  order by e.id desc
) e;

comment on view ops.webhook_events is
  'Webhook events with their bodies. Within each organisation the newest event comes first. Always filter by organisation and add a limit. Events without a message are test events. ops.why(id) shows the deliveries of one event.';

comment on column ops.webhook_events.id is 'The event''s ID, evt_…, for ops.why and ops.replay_event.';
comment on column ops.webhook_events.organisation is 'The organisation''s ID, org_….';
comment on column ops.webhook_events.type is 'The event type, such as email.sent.';
comment on column ops.webhook_events.message is 'The message ID, em_… or sm_…; null for a test event.';
comment on column ops.webhook_events.occurred_at is 'When the event occurred.';
comment on column ops.webhook_events.body is 'The body of the POST request, byte for byte.';
