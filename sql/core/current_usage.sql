create function core.current_usage(
  organisation_id uuid,
  out period_start timestamptz, out period_end timestamptz,
  out emails_used integer, out sms_used integer, out sms_credits integer
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  -- The clock or the next send closes a period that has ended, whichever comes first.
  select
    case when a.period_end > core.now() then a.period_start else p.period_start end,
    case when a.period_end > core.now() then a.period_end else p.period_end end,
    case when a.period_end > core.now() then a.emails_used else 0 end,
    case when a.period_end > core.now() then a.sms_used else 0 end,
    a.sms_credits
  from app.allowances a
  join app.organisations o on o.id = a.organisation_id
  cross join lateral core.period_at(o.created_at, core.now()) p
  where a.organisation_id = current_usage.organisation_id
$$;

comment on function core.current_usage is
  'Returns an organisation''s usage in the current billing period, and its SMS credits.';
