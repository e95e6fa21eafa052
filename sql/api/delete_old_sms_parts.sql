create function api.delete_old_sms_parts()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.sms_parts p
    where p.message_id in (
      select o.message_id
      from app.sms_parts o
      where o.message_id < (
        select core.first_id_at(core.now() - make_interval(days => r.days)) from app.retention r where r.data = 'messages')
      order by o.message_id
      limit 20000)
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.delete_old_sms_parts is
  'Delete parts of SMS that are older than the retention period of messages. Returns their number, at most 20,000.';
