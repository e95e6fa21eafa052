create view ops.plans as
select p.id, p.name, p.price_rand, p.emails_included, p.sms_included, p.domains_included,
  p.test_messages_daily, count(o.id) as organisations
from app.plans p
left join app.organisations o on o.plan_id = p.id
  and not exists (select from app.moved_organisations d where d.organisation_id = o.id)
group by p.id;

comment on view ops.plans is 'Plans, with the number of organisations on each.';

comment on column ops.plans.id is 'The ID of the plan. Functions of ops accept it or the name.';
comment on column ops.plans.name is 'The name, as GET /v1/usage shows it.';
comment on column ops.plans.price_rand is 'The price in rand a month.';
comment on column ops.plans.emails_included is 'Email recipients included in a month.';
comment on column ops.plans.sms_included is 'SMS segments included in a month.';
comment on column ops.plans.domains_included is 'Number of sending domains that an organisation can have.';
comment on column ops.plans.test_messages_daily is 'Test and sandbox messages that an organisation can send in a UTC day.';
comment on column ops.plans.organisations is 'Number of organisations on the plan.';
