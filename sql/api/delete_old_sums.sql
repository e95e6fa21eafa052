create function api.delete_old_sums()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with bound as (
    select ((core.now() - make_interval(days => r.days)) at time zone 'UTC')::date as day
    from app.retention r
    where r.data = 'messages'
  ),
  volume as (
    delete from app.daily_volume v using bound b where v.day < b.day returning 1
  ),
  latencies as (
    delete from app.daily_latencies l using bound b where l.day < b.day returning 1
  ),
  bounces as (
    delete from app.daily_bounces d using bound b where d.day < b.day returning 1
  ),
  hours as (
    delete from app.webhook_hours h where h.hour < core.now() - interval '2 days' returning 1
  )
  select ((select count(*) from volume) + (select count(*) from latencies) + (select count(*) from bounces)
    + (select count(*) from hours))::integer
$$;

comment on function api.delete_old_sums is
  'Delete the sums of days whose messages are no longer stored, and those of webhook attempts after two days. Returns the number of rows.';
