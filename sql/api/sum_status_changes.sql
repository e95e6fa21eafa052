create function api.sum_status_changes()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- All is reached by its key; a plan made while a table was small must not scan it when it has grown.
set enable_seqscan = off
as $$
declare
  v_summed integer;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('postgram reports', 0)) then
    return 0;
  end if;
  with taken as (
    delete from app.status_changes c
    -- Bounded, so that one transaction never holds an hour's work; the caller asks again.
    where c.ctid = any (array(select n.ctid from app.status_changes n limit 20000))
    returning c.message_id, c.change, c.occurred_at
  ),
  fact as materialized (
    select (m.created_at at time zone 'UTC')::date as day, m.organisation_id, m.channel, m.class, m.tags, t.change,
      m.error_code, m.error_message,
      case t.change when 'sent' then m.sent_at when 'delivered' then m.delivered_at end
        - greatest(m.created_at, m.scheduled_at) as latency
    from taken t
    join app.messages m on m.id = t.message_id
    where m.mode = 'live' and not m.is_sandbox
      -- Retried by an operator it had failed before, and counts as one that did.
      and (t.change <> 'failed' or not exists (
        select from app.events e where e.message_id = m.id and e.type = 'queued' and e.occurred_at <= t.occurred_at))
  ),
  volume as (
    select f.day, f.organisation_id, f.channel, f.class, g.tag,
      count(*) filter (where f.change = 'queued'),
      count(*) filter (where f.change = 'sent'),
      count(*) filter (where f.change = 'delivered'),
      count(*) filter (where f.change = 'bounced'),
      count(*) filter (where f.change = 'complained'),
      count(*) filter (where f.change = 'failed'),
      count(*) filter (where f.change = 'expired'),
      count(*) filter (where f.change = 'rejected')
    from fact f
    cross join lateral (select null as tag union select unnest(f.tags)) g
    group by f.day, f.organisation_id, f.channel, f.class, g.tag
  ),
  added as (
    select core.add_volume(array_agg(v::app.daily_volume)) from volume v
  ),
  latencies as (
    insert into app.daily_latencies as l (day, organisation_id, channel, stage, bucket, messages)
    select f.day, f.organisation_id, f.channel, f.change,
      core.latency_bucket(f.latency), count(*)
    from fact f
    where f.latency is not null
    group by grouping sets (
      (f.day, f.organisation_id, f.channel, f.change, core.latency_bucket(f.latency)),
      (f.day, f.channel, f.change, core.latency_bucket(f.latency)))
    on conflict (organisation_id, day, channel, stage, bucket) do update set messages = l.messages + excluded.messages
  ),
  bounces as (
    insert into app.daily_bounces as b (day, organisation_id, channel, code, reason, messages)
    select f.day, f.organisation_id, f.channel, f.error_code, core.plain_reason(f.error_message), count(*)
    from fact f
    where f.change in ('bounced', 'failed', 'expired') and f.error_code is not null
    group by 1, 2, 3, 4, 5
    on conflict (day, organisation_id, channel, code, reason) do update set messages = b.messages + excluded.messages
  )
  -- Of what is added nothing is read, but unless it is named here it would not be done.
  select count(t.message_id) into v_summed from added left join taken t on true;
  return v_summed;
end
$$;

comment on function api.sum_status_changes is
  'Add what happened to messages to the sums that reports are read from. Answers how many changes, at most 20 000; one caller at a time.';
