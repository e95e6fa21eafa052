create function core.is_sending_hour(at timestamptz)
returns boolean
language sql stable
as $$
  -- The opening time is inside, the closing time outside.
  select case
    when l.weekday = 7 then false
    when s.marketing_hours = 'interface' then l.hour between 8 and 19
    when core.is_public_holiday(l.day) then false
    when l.weekday = 6 then l.hour between 9 and 12
    else l.hour between 8 and 19
  end
  from app.sms_settings s
  cross join (
    select extract(isodow from t.local) as weekday, extract(hour from t.local) as hour, t.local::date as day
    from (select is_sending_hour.at at time zone 'Africa/Johannesburg' as local) t
  ) l
$$;

comment on function core.is_sending_hour is
  'Returns whether marketing SMS may be sent at a time: Monday to Saturday from 08:00 to 20:00 in South Africa, or within the statutory hours if ops.set_marketing_hours chose them.';
