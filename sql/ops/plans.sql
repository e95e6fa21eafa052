create view ops.plans as
select p.id, p.name, p.price_rand, p.emails_included, p.sms_included, p.domains_included, count(o.id) as organisations
from app.plans p
left join app.organisations o on o.plan_id = p.id
group by p.id;

comment on view ops.plans is 'Plans, and how many organisations have each.';
