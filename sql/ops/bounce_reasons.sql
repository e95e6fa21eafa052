create view ops.bounce_reasons as
select b.channel, b.code, b.reason, sum(b.messages) as messages, count(distinct b.organisation_id) as organisations,
  max(b.day) as last_day
from app.daily_bounces b
where b.day >= (core.now() at time zone 'UTC')::date - 7
group by b.channel, b.code, b.reason
order by messages desc;

comment on view ops.bounce_reasons is
  'Why messages of the last seven days bounced, failed or expired, the most frequent reason first: what the provider said, without addresses and ids.';
