create view ops.bounce_reasons as
select b.channel, b.code, b.reason, sum(b.messages) as messages, count(distinct b.organisation_id) as organisations,
  max(b.day) as last_day
from app.daily_bounces b
where b.day >= (core.now() at time zone 'UTC')::date - 7
group by b.channel, b.code, b.reason
order by messages desc;

comment on view ops.bounce_reasons is
  'Reasons why messages of the last seven days bounced, failed or expired. The most frequent reason comes first. The reason is the provider''s text without addresses and IDs.';

comment on column ops.bounce_reasons.channel is 'email or sms.';
comment on column ops.bounce_reasons.code is 'The error code of the messages.';
comment on column ops.bounce_reasons.reason is 'The provider''s text without addresses, IDs and long numbers.';
comment on column ops.bounce_reasons.messages is 'Number of messages with this reason.';
comment on column ops.bounce_reasons.organisations is 'Number of organisations that sent them.';
comment on column ops.bounce_reasons.last_day is 'The last UTC day on which one of them was accepted.';
