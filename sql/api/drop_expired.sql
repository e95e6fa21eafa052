create function api.drop_expired()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- Dropping locks the whole table, and every later query waits behind that lock.
set lock_timeout = '100ms'
as $$
declare
  v_expired record;
begin
  -- One partition for each call, so that its locks are released before the next.
  for v_expired in
    select p.parent, p.name, p.span_to from core.partitions() p where p.expires_at <= core.now() order by p.span_to, p.name
  loop
    begin
      -- Messages that still wait, such as those of a paused organisation, keep their bodies.
      if v_expired.parent <> 'bodies' or core.delete_settled_bodies(v_expired.name) = 0 then
        if v_expired.parent = 'webhook_events' then
          -- Replays that are not delivered yet: without their events they would block other deliveries.
          delete from app.webhook_deliveries d where d.event_id < core.first_id_at(v_expired.span_to);
        end if;
        execute format('drop table app.%I', v_expired.name);
        return 1;
      end if;
    exception when lock_not_available then
      -- Another session holds the table for longer; the clock tries again in a minute. Trying the next
      -- partition now would make senders wait again.
      return 0;
    end;
  end loop;
  return 0;
end
$$;

comment on function api.drop_expired is
  'Drop one partition whose retention period has ended (ops.retention). The caller repeats the call until it returns 0. Waits at most 0.1 s for a lock, so that sends are not delayed. Returns the number of partitions dropped.';
