create function ops.statement(
  organisation text, period timestamptz default null,
  out period_start timestamptz, out period_end timestamptz, out is_closed boolean,
  out plan text, out price_rand integer, out plan_changes text,
  out emails_included integer, out emails_used integer, out sms_included integer, out sms_used integer,
  out credits_before bigint, out credits_granted bigint, out credits_spent bigint, out credits_refunded bigint,
  out credits_after bigint
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_at timestamptz := coalesce(period, core.now());
  v_created_at timestamptz := (select o.created_at from app.organisations o where o.id = v_organisation);
begin
  -- A time in the rest of the current period is allowed.
  if v_at < v_created_at or v_at >= (core.period_at(v_created_at, core.now())).period_end then
    raise exception 'no billing period of % contains %', organisation, coalesce(core.iso(v_at), v_at::text)
      using hint = format('the first period starts at %s; the current period is the last', core.iso(v_created_at));
  end if;

  select c.period_start, c.period_end, true, c.plan_id, c.price_rand,
      c.emails_included, c.emails_used, c.sms_included, c.sms_used
    into period_start, period_end, is_closed, plan, price_rand,
      emails_included, emails_used, sms_included, sms_used
  from app.closed_periods c
  where c.organisation_id = v_organisation and c.period_start <= v_at and c.period_end > v_at;
  if not found then
    -- The current period, or one that has ended but is not closed yet.
    select p.period_start, p.period_end, false, n.id, n.price_rand,
        n.emails_included, case when a.period_start = p.period_start then a.emails_used else 0 end,
        n.sms_included, case when a.period_start = p.period_start then a.sms_used else 0 end
      into period_start, period_end, is_closed, plan, price_rand,
        emails_included, emails_used, sms_included, sms_used
    from app.organisations o
    join app.plans n on n.id = o.plan_id
    join app.allowances a on a.organisation_id = o.id
    cross join lateral core.period_at(o.created_at, v_at) p
    where o.id = v_organisation;
  end if;

  plan_changes := (
    select string_agg(format('%s from %s to %s', core.iso(c.changed_at), c.from_plan, c.to_plan), ', ' order by c.id)
    from app.plan_changes c
    where c.organisation_id = v_organisation and c.changed_at >= period_start and c.changed_at < period_end);

  select coalesce(sum(l.credits) filter (where l.period_start < statement.period_start), 0),
      coalesce(sum(l.credits) filter (where l.period_start = statement.period_start and l.kind = 'grant'), 0),
      coalesce(-sum(l.credits) filter (where l.period_start = statement.period_start and l.kind = 'sms'), 0),
      coalesce(sum(l.credits) filter (where l.period_start = statement.period_start and l.kind = 'refund'), 0),
      coalesce(sum(l.credits), 0)
    into credits_before, credits_granted, credits_spent, credits_refunded, credits_after
  from app.credit_ledger l
  where l.organisation_id = v_organisation and l.period_start <= statement.period_start;
end
$$;

comment on function ops.statement is
  'Return what to invoice an organisation for one billing period. The period is the one that contains the given time; the default is the current one. The plan is the one in force at its end; plan_changes lists changes within the period, null if there were none. credits_before + credits_granted - credits_spent + credits_refunded = credits_after.';
