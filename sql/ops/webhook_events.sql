create view ops.webhook_events as
select
  core.encode_id('evt', e.id) as id,
  core.encode_id('org', o.id) as organisation,
  e.type,
  core.encode_id(case when e.type::text like 'email.%' then 'em' else 'sm' end, e.message_id) as message,
  e.occurred_at,
  e.body
from app.organisations o
-- An organisation's own are found in this order by an index, however many there are of others.
cross join lateral (
  select e.*
  from app.webhook_events e
  where e.organisation_id = o.id
  order by e.id desc
) e;

comment on view ops.webhook_events is
  'Webhook events and their bodies, the newest first. Organisation by organisation: name one, and a limit. Those without a message are test events. ops.why(id) says what became of one.';

comment on column ops.webhook_events.id is 'evt_…, for ops.why and ops.replay_event.';
comment on column ops.webhook_events.organisation is 'The organisation''s id, org_….';
comment on column ops.webhook_events.type is 'Such as email.sent.';
comment on column ops.webhook_events.message is 'The message, em_… or sm_…; null for a test event.';
comment on column ops.webhook_events.occurred_at is 'When it happened.';
comment on column ops.webhook_events.body is 'What is posted, byte for byte.';
