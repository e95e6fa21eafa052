create view ops.outcome_rates as
with sums as (
  select v.organisation_id, v.channel,
    sum(v.sent) as sent, sum(v.delivered) as delivered, sum(v.bounced) as bounced, sum(v.complained) as complained,
    sum(v.expired) as expired, sum(v.failed + v.expired) as failed
  from app.daily_volume v
  where v.tag is null and v.day >= (core.now() at time zone 'UTC')::date - 7
  group by v.organisation_id, v.channel
)
select core.encode_id('org', s.organisation_id) as organisation, o.name, s.channel, s.sent,
  case when r.has_reports then round(s.delivered / nullif(s.sent, 0), 4) end as delivered_rate,
  case when r.has_reports and s.channel = 'email' then round(s.bounced / nullif(s.sent, 0), 4) end as bounced_rate,
  case when r.has_reports and s.channel = 'email' then round(s.complained / nullif(s.sent, 0), 4) end as complained_rate,
  -- A refusal at the hand-over is known of every provider.
  case when r.has_reports or s.failed > 0 then round(s.failed / nullif(s.sent, 0), 4) end as failed_rate
from sums s
join app.organisations o on o.id = s.organisation_id
-- These come from delivery receipts only. A relay, or a network that sends none, leaves messages sent.
cross join lateral (select s.delivered + s.bounced + s.complained + s.expired > 0 as has_reports) r;

comment on view ops.outcome_rates is
  'Rates of delivery, bounces, complaints and failures in seven days. By organisation and channel, of live messages that were accepted in the last seven days and sent. A rate is null where nothing reports it: an SMTP relay, or an SMS network without delivery receipts, says nothing of what it took. For a week after a change of provider the rates are of both. Complaints of the last 24 hours, which pause, are in ops.complaint_rates.';

comment on column ops.outcome_rates.organisation is 'The organisation''s id, org_….';
comment on column ops.outcome_rates.name is 'Its name.';
comment on column ops.outcome_rates.channel is 'email or sms.';
comment on column ops.outcome_rates.sent is 'Messages that were handed over.';
comment on column ops.outcome_rates.delivered_rate is 'How many of those arrived: 0.98 is 98 %; null where nothing reports it.';
comment on column ops.outcome_rates.bounced_rate is 'How many of those bounced; null where nothing reports it, and for SMS.';
comment on column ops.outcome_rates.complained_rate is 'How many of those somebody complained about; null where nothing reports it, and for SMS.';
comment on column ops.outcome_rates.failed_rate is 'How many failed or expired, by those sent; null where none did and nothing reports it.';
