create function ops.set_retention(data text, days integer)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before integer;
begin
  if data is null or data not in ('messages', 'bodies', 'webhooks') then
    raise exception '% has no retention period; give messages, bodies or webhooks', coalesce(quote_literal(data), 'null');
  end if;
  if days is null or days not between 1 and 3660 then
    raise exception 'days must be from 1 to 3660';
  end if;
  -- An SMS can be scheduled 30 days ahead, and messages are dropped by whole months.
  if data = 'messages' and days < 62 then
    raise exception 'messages must be kept for at least 62 days, because an SMS can wait for 30 days';
  end if;
  -- Locks all rows, so that the second of two operators sees the values that the first one set.
  perform from app.retention r order by r.data for no key update;
  select r.days into v_before from app.retention r where r.data = set_retention.data;
  update app.retention r set days = set_retention.days where r.data = set_retention.data;
  -- ops.erase_person finds the bodies and events of a person by the messages.
  if exists (select from app.retention r join app.retention m on m.data = 'messages' and m.days < r.days) then
    raise exception 'bodies and webhooks cannot be kept for longer than messages'
      using hint = 'select data, days from ops.retention';
  end if;
  perform core.audit('set_retention', null, data,
    jsonb_build_object('days', v_before), jsonb_build_object('days', days));
end
$$;

comment on function ops.set_retention is
  'Set how many days messages, bodies or webhooks are kept. messages includes timelines; webhooks are events with their attempts. If the number is lower than before, older data is dropped permanently within a minute. Webhook events can be replayed only while they are kept.';
