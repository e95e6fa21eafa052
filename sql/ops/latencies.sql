create view ops.latencies as
with step as (
  select l.day, l.organisation_id, l.channel, l.stage, l.bucket,
    sum(l.messages) over (w order by l.bucket) as up_to_here,
    sum(l.messages) over w as messages
  from app.daily_latencies l
  where l.organisation_id is null
  window w as (partition by l.day, l.channel, l.stage)
)
select s.day, s.channel, s.stage, max(s.messages) as messages,
  round(2 ^ (min(s.bucket) filter (where s.up_to_here >= 0.5 * s.messages) / 4.0)) as p50_ms,
  round(2 ^ (min(s.bucket) filter (where s.up_to_here >= 0.9 * s.messages) / 4.0)) as p90_ms,
  round(2 ^ (min(s.bucket) filter (where s.up_to_here >= 0.99 * s.messages) / 4.0)) as p99_ms
from step s
group by s.day, s.channel, s.stage;

comment on view ops.latencies is
  'Percentiles of the time until messages were sent and delivered. In milliseconds by UTC day and channel, from when the message was queued (a scheduled SMS: from its scheduled time). Values are at most 19 % too high.';

comment on column ops.latencies.day is 'The UTC day on which the messages were accepted.';
comment on column ops.latencies.channel is 'email or sms.';
comment on column ops.latencies.stage is
  'sent (from queued until a provider accepted the message) or delivered (from queued until delivered).';
comment on column ops.latencies.messages is 'Number of messages measured.';
comment on column ops.latencies.p50_ms is '50 % of the messages took at most this long, in milliseconds.';
comment on column ops.latencies.p90_ms is '90 % of the messages took at most this long, in milliseconds.';
comment on column ops.latencies.p99_ms is '99 % of the messages took at most this long, in milliseconds.';
