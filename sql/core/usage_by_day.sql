create function core.usage_by_day(organisation_id uuid)
returns jsonb
language sql stable
as $$
  with period as (
    select u.emails_used, u.sms_used, p.emails_included, p.sms_included,
      (u.period_start at time zone 'UTC')::date as first_day, (core.now() at time zone 'UTC')::date as today
    from core.current_usage(usage_by_day.organisation_id) u
    cross join app.organisations o
    join app.plans p on p.id = o.plan_id
    where o.id = usage_by_day.organisation_id
  ),
  days as (
    select d.day,
      coalesce(sum(v.units) filter (where v.channel = 'email'), 0) as emails,
      coalesce(sum(v.units) filter (where v.channel = 'sms'), 0) as sms
    from period p
    cross join lateral (select p.first_day + n as day from generate_series(0, p.today - p.first_day) n) d
    cross join unnest(enum_range(null::app.channel)) c (channel)
    cross join unnest(enum_range(null::app.class)) k (class)
    -- By all columns of the key, so that neither other organisations nor many tags make it slow. The limit keeps
    -- Postgres from reading the days of all organisations instead.
    left join lateral (
      select x.channel, greatest(x.units, x.accepted) as units
      from app.daily_volume x
      where x.day = d.day and x.organisation_id = usage_by_day.organisation_id
        and x.channel = c.channel and x.class = k.class and x.tag is null
      limit 1
    ) v on true
    group by d.day
  ),
  -- Counted back from what is used now, because the first day began before the period.
  later as (
    select d.*,
      sum(d.emails) over w - d.emails as emails_later,
      sum(d.sms) over w - d.sms as sms_later,
      sum(d.sms) over () as sms_total
    from days d
    window w as (order by d.day desc)
  )
  select jsonb_agg(jsonb_build_object(
      'day', l.day, 'emails', l.emails, 'sms', l.sms,
      'emailsLeft', greatest(0, p.emails_included - greatest(0, p.emails_used - l.emails_later)),
      'smsLeft', greatest(0, p.sms_included - greatest(0, case
        when p.sms_used < p.sms_included then p.sms_used
        -- The rest was paid with credits.
        else greatest(p.sms_used, l.sms_total) end - l.sms_later)))
    order by l.day)
  from later l
  cross join period p
$$;

comment on function core.usage_by_day is
  'Returns what an organisation used on each day of the current billing period, and what was left of its plan at the end of the day: [{day, emails, sms, emailsLeft, smsLeft}]. emails are recipients, sms are segments, with those that credits paid for. An SMS that was refunded counts on its day.';
