create function api.drop_expired()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- Dropping takes a lock on the whole table, behind which everybody waits who comes meanwhile.
set lock_timeout = '100ms'
as $$
declare
  v_expired record;
begin
  -- In a transaction each, so that the locks of one are gone before the next.
  for v_expired in
    select p.parent, p.name, p.span_to from core.partitions() p where p.expires_at <= core.now() order by p.span_to, p.name
  loop
    begin
      -- What still waits to be handed over, as for an organisation that is paused, keeps its body.
      if v_expired.parent <> 'bodies' or core.delete_settled_bodies(v_expired.name) = 0 then
        if v_expired.parent = 'webhook_events' then
          -- Replays that an endpoint has not taken; without their events they would be in the way of others.
          delete from app.webhook_deliveries d where d.event_id < core.first_id_at(v_expired.span_to);
        end if;
        execute format('drop table app.%I', v_expired.name);
        return 1;
      end if;
    exception when lock_not_available then
      -- Somebody holds the table for longer; there is another time in a minute. With the next table at
      -- once senders would wait again, and so on for as long as there are any.
      return 0;
    end;
  end loop;
  return 0;
end
$$;

comment on function api.drop_expired is
  'Drop one partition of what is kept no longer (ops.retention); the caller asks again. Never holds senders up for more than a tenth of a second: where a table is in use, it ends. Answers how many were dropped.';
