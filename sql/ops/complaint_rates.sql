create view ops.complaint_rates as
select core.encode_id('org', o.id) as organisation, o.name, o.state, r.complaints, r.sent,
  round(r.complaints / nullif(r.sent, 0)::numeric, 6) as rate, r.counted_since
from app.organisations o
cross join lateral core.complaint_rate(o.id) r
where o.id in (select c.organisation_id from app.complaints c where c.received_at > core.now() - interval '24 hours')
order by rate desc nulls first;

comment on view ops.complaint_rates is
  'Organisations with complaints within 24 hours: complaints since counted_since, emails sent, and the rate, which pauses from 0.001 on with 3 complaints. Of what was sent it counts some 1000 to a complaint, so that it stays fast: from 0.001 on the rate is exact, below that it is at most what is shown.';
