create view ops.bounce_reasons as
select b.channel, b.code, b.reason, sum(b.messages) as messages, count(distinct b.organisation_id) as organisations,
  max(b.day) as last_day
from app.daily_bounces b
where b.day >= (core.now() at time zone 'UTC')::date - 7
group by b.channel, b.code, b.reason
order by messages desc;

comment on view ops.bounce_reasons is
  'Why messages of the last seven days bounced, failed or expired. The most frequent reason comes first: what the provider said, without addresses and ids.';

comment on column ops.bounce_reasons.channel is 'email or sms.';
comment on column ops.bounce_reasons.code is 'The error code that the messages ended with.';
comment on column ops.bounce_reasons.reason is 'What the provider said, without addresses, ids and long numbers.';
comment on column ops.bounce_reasons.messages is 'How many messages ended so.';
comment on column ops.bounce_reasons.organisations is 'How many organisations these are of.';
comment on column ops.bounce_reasons.last_day is 'The last UTC day on which one of them had been accepted.';
