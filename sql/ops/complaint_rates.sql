create view ops.complaint_rates as
select core.encode_id('org', o.id) as organisation, o.name, o.state, r.complaints, r.sent,
  round(r.complaints / nullif(r.sent, 0)::numeric, 6) as rate, r.counted_since
from app.organisations o
cross join lateral core.complaint_rate(o.id) r
where o.id in (select c.organisation_id from app.complaints c where c.received_at > core.now() - interval '24 hours')
order by rate desc nulls first;

comment on view ops.complaint_rates is
  'Organisations with complaints in the last 24 hours, and their rate. Complaints and emails sent since counted_since; a rate of 0.001 with 3 complaints pauses. It counts only some 1000 emails to a complaint, so that it stays fast: from 0.001 on the rate is exact, below that it is at most what is shown.';

comment on column ops.complaint_rates.organisation is 'The organisation''s id, org_….';
comment on column ops.complaint_rates.name is 'Its name.';
comment on column ops.complaint_rates.state is 'active, paused or suspended.';
comment on column ops.complaint_rates.complaints is 'How many there were since counted_since.';
comment on column ops.complaint_rates.sent is 'Emails sent since then, as far as the rate needs them.';
comment on column ops.complaint_rates.rate is 'Complaints by emails sent: 0.001 is 0.1 %.';
comment on column ops.complaint_rates.counted_since is '24 hours ago, or when complaints were last forgiven by ops.resume.';
