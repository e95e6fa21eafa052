create view ops.outcome_rates as
with sums as (
  select v.organisation_id, v.channel,
    sum(v.sent) as sent, sum(v.delivered) as delivered, sum(v.bounced) as bounced, sum(v.complained) as complained,
    sum(v.failed + v.expired) as failed
  from app.daily_volume v
  where v.tag = '' and v.day >= (core.now() at time zone 'UTC')::date - 7
  group by v.organisation_id, v.channel
)
select core.encode_id('org', s.organisation_id) as organisation, o.name, s.channel, s.sent,
  round(s.delivered / nullif(s.sent, 0), 4) as delivered_rate,
  round(s.bounced / nullif(s.sent, 0), 4) as bounced_rate,
  round(s.complained / nullif(s.sent, 0), 4) as complained_rate,
  round(s.failed / nullif(s.sent, 0), 4) as failed_rate
from sums s
join app.organisations o on o.id = s.organisation_id;

comment on view ops.outcome_rates is
  'What became of the live messages that were accepted in the last seven days, by organisation and channel, each rate of what was sent. failed includes expired. Complaints of the last 24 hours, which pause, are in ops.complaint_rates.';

comment on column ops.outcome_rates.organisation is 'The organisation''s id, org_….';
comment on column ops.outcome_rates.name is 'Its name.';
comment on column ops.outcome_rates.channel is 'email or sms.';
comment on column ops.outcome_rates.sent is 'Messages that were handed over.';
comment on column ops.outcome_rates.delivered_rate is 'How many of those arrived: 0.98 is 98 %.';
comment on column ops.outcome_rates.bounced_rate is 'How many of those bounced.';
comment on column ops.outcome_rates.complained_rate is 'How many of those somebody complained about.';
comment on column ops.outcome_rates.failed_rate is 'How many failed or expired, by those sent.';
