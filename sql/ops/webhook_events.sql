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
  'Webhook events, organisation by organisation, of each the newest first: name one, and a limit. Those without a message are test events. ops.why(id) says what became of one.';
