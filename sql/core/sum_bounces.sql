create function core.sum_bounces(changes core.counted_change[])
returns void
language sql volatile
as $$
  insert into app.daily_bounces as b (day, organisation_id, channel, code, reason, messages)
  select c.day, c.organisation_id, c.channel, c.error_code, core.plain_reason(c.error_message), count(*)
  from unnest(changes) c
  where c.change in ('bounced', 'failed', 'expired') and c.error_code is not null
  group by 1, 2, 3, 4, 5
  on conflict (day, organisation_id, channel, code, reason) do update set messages = b.messages + excluded.messages
$$;

comment on function core.sum_bounces is 'Add changes to the sums by reason of messages that bounced, failed or expired.';
