create view ops.complaint_rates as
select core.encode_id('org', o.id) as organisation, o.name, o.state, r.complaints, r.sent,
  round(r.complaints / nullif(r.sent, 0)::numeric, 6) as rate, r.counted_since
from app.organisations o
cross join lateral core.complaint_rate(o.id) r
where o.id in (select c.organisation_id from app.complaints c where c.received_at > core.now() - interval '24 hours')
order by rate desc nulls first;

comment on view ops.complaint_rates is
  'Organisations with complaints in the last 24 hours, and their rates. The service pauses an organisation with at least 3 complaints and a rate of at least 0.001. Rates from 0.001 upwards are exact; a lower rate is an upper bound, because only about 1,000 emails are counted for each complaint.';

comment on column ops.complaint_rates.organisation is 'The organisation''s ID, org_….';
comment on column ops.complaint_rates.name is 'The organisation''s name.';
comment on column ops.complaint_rates.state is 'active, paused or suspended.';
comment on column ops.complaint_rates.complaints is 'Number of complaints since counted_since.';
comment on column ops.complaint_rates.sent is 'Number of emails sent since then, counted as far as the rate needs it.';
comment on column ops.complaint_rates.rate is 'Complaints divided by emails sent: 0.001 is 0.1 %.';
comment on column ops.complaint_rates.counted_since is
  '24 hours ago, or the last ops.resume of the organisation if that was later.';
