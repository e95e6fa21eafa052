create view ops.plans as
select p.id, p.name, p.price_rand, p.emails_included, p.sms_included, p.domains_included,
  p.test_messages_daily, count(o.id) as organisations
from app.plans p
left join app.organisations o on o.plan_id = p.id
group by p.id;

comment on view ops.plans is
  'Plans, and how many organisations have each.';

comment on column ops.plans.id is 'Functions of ops take it or the name.';
comment on column ops.plans.name is 'What GET /v1/usage calls it.';
comment on column ops.plans.price_rand is 'What it costs, in rand a month.';
comment on column ops.plans.emails_included is 'Recipients of email in a month.';
comment on column ops.plans.sms_included is 'SMS segments in a month.';
comment on column ops.plans.domains_included is 'Sending domains at a time.';
comment on column ops.plans.test_messages_daily is 'Test messages, and sandbox messages beside a real provider, that an organisation may send each day in UTC.';
comment on column ops.plans.organisations is 'How many organisations have it.';
