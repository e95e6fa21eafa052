create function api.forget_deliveries()
returns integer
language sql volatile security definer
set search_path = ''
as $$
  with forgotten as (
    delete from app.webhook_deliveries d
    where d.event_id < (
      select core.first_id_at(core.now() - make_interval(days => r.days)) from app.retention r where r.what = 'webhooks')
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.forget_deliveries is
  'Forget what is still to be delivered of events that are kept no longer: replays that an endpoint has not taken. Answers how many.';
