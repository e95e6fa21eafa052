create function core.close_periods(ids uuid[])
returns integer
language plpgsql volatile
as $$
declare
  v_closed integer;
begin
  with recursive ended as (
    select a.organisation_id, o.created_at as anchor, a.period_start, a.period_end,
      a.emails_used, a.sms_used, a.sms_credits, o.plan_id
    from app.allowances a
    join app.organisations o on o.id = a.organisation_id
    where a.organisation_id = any (ids) and a.period_end <= core.now()
    union all
    -- Periods that were not closed in time. Nothing was accepted in them, or the send would have closed them.
    select e.organisation_id, e.anchor, p.period_start, p.period_end, 0, 0, e.sms_credits, e.plan_id
    from ended e
    cross join lateral core.period_at(e.anchor, e.period_end) p
    where p.period_end <= core.now()
  ),
  closed as (
    insert into app.closed_periods (
      organisation_id, period_start, period_end, plan_id, plan_name, price_rand,
      emails_included, emails_used, sms_included, sms_used, sms_credits
    )
    select e.organisation_id, e.period_start, e.period_end, p.id, p.name, p.price_rand,
      p.emails_included, e.emails_used, p.sms_included, e.sms_used, e.sms_credits
    from ended e
    join app.plans p on p.id = e.plan_id
    returning organisation_id
  ),
  opened as (
    update app.allowances a
    set emails_used = 0, sms_used = 0, (period_start, period_end) = (select p.* from core.period_at(o.created_at, core.now()) p)
    from app.organisations o
    where o.id = a.organisation_id and a.organisation_id in (select e.organisation_id from ended e)
  )
  select count(*) into v_closed from closed;
  return v_closed;
end
$$;

comment on function core.close_periods is
  'Close the billing periods that have ended and open the next ones. The caller has locked the allowances of the organisations. Returns the number of closed periods.';
