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
  -- Every provider shows a refusal at the attempt.
  case when r.has_reports or s.failed > 0 then round(s.failed / nullif(s.sent, 0), 4) end as failed_rate
from sums s
join app.organisations o on o.id = s.organisation_id
-- These outcomes come from receipts only. With a relay, or a network without receipts, messages stay sent.
cross join lateral (select s.delivered + s.bounced + s.complained + s.expired > 0 as has_reports) r;

comment on view ops.outcome_rates is
  'Rates of delivery, bounces, complaints and failures in the last seven days. By organisation and channel, for live messages that were accepted in that time and sent. A rate is null if the provider reports no outcomes, such as an SMTP relay or an SMS network without delivery receipts. After a change of provider the rates cover both providers for a week. ops.complaint_rates has the rates that pause an organisation.';

comment on column ops.outcome_rates.organisation is 'The organisation''s ID, org_….';
comment on column ops.outcome_rates.name is 'The organisation''s name.';
comment on column ops.outcome_rates.channel is 'email or sms.';
comment on column ops.outcome_rates.sent is 'Number of messages sent.';
comment on column ops.outcome_rates.delivered_rate is
  'Share of sent messages that were delivered: 0.98 is 98 %; null if not reported.';
comment on column ops.outcome_rates.bounced_rate is 'Share of sent emails that bounced; null if not reported, and for SMS.';
comment on column ops.outcome_rates.complained_rate is
  'Share of sent emails with a complaint; null if not reported, and for SMS.';
comment on column ops.outcome_rates.failed_rate is
  'Failed and expired messages divided by sent messages; null if there are none and they are not reported.';
