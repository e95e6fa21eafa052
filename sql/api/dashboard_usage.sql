create function api.dashboard_usage(session text, organisation text, statements_before timestamptz default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_usage.session, dashboard_usage.organisation);
  v_days jsonb;
begin
  with period as (
    select u.emails_used, u.sms_used, p.emails_included, p.sms_included,
      (u.period_start at time zone 'UTC')::date as first_day, (core.now() at time zone 'UTC')::date as today
    from core.current_usage(v_organisation) u
    cross join app.organisations o
    join app.plans p on p.id = o.plan_id
    where o.id = v_organisation
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
      where x.day = d.day and x.organisation_id = v_organisation
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
    into v_days
  from later l
  cross join period p;

  return jsonb_build_object(
    'usage', core.usage_object(v_organisation),
    'days', v_days,
    'statements', coalesce((
      select jsonb_agg(jsonb_build_object(
          'start', core.iso(s.period_start), 'end', core.iso(s.period_end),
          'planName', s.plan_name, 'priceRand', s.price_rand,
          'emailsUsed', s.emails_used, 'emailsIncluded', s.emails_included,
          'smsUsed', s.sms_used, 'smsIncluded', s.sms_included, 'credits', s.sms_credits)
        order by s.period_start desc)
      from (
        select c.* from app.closed_periods c
        where c.organisation_id = v_organisation
          and (dashboard_usage.statements_before is null or c.period_start < dashboard_usage.statements_before)
        order by c.period_start desc
        limit core.page_rows() + 1
      ) s), '[]'));
end
$$;

comment on function api.dashboard_usage is
  'Returns the usage of an organisation: usage (core.usage_object); days of the current billing period, with what was used on each and what was left of the plan at its end, [{day, emails, sms, emailsLeft, smsLeft}]: emails are recipients, sms are segments with those that credits paid for, and an SMS that was refunded counts on its day; statements, the closed billing periods that began before statements_before (null: all), newest first, a page and one more (core.page_rows): [{start, end, planName, priceRand, emailsUsed, emailsIncluded, smsUsed, smsIncluded, credits}]. Refuses as core.member_of does.';
