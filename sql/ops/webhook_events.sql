create view ops.webhook_events as
select
  core.encode_id('evt', e.id) as id,
  core.encode_id('org', o.id) as organisation,
  e.type,
  core.encode_id(case when e.type < 'sms.sent' then 'em' else 'sm' end, e.message_id) as message,
  e.occurred_at,
  e.body
from app.organisations o
join app.webhook_events e on e.organisation_id = o.id
order by e.id desc;

comment on view ops.webhook_events is
  'Webhook events, newest first; add a limit. One without a message is a test event. ops.why(id) says what became of one.';
