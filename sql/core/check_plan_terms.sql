create function core.check_plan_terms(plan app.plans)
returns void
language plpgsql immutable
as $$
begin
  perform core.check_name(plan.name);
  if num_nulls(plan.price_rand, plan.emails_included, plan.sms_included, plan.domains_included, plan.test_messages_daily) > 0
    or least(plan.price_rand, plan.emails_included, plan.sms_included, plan.domains_included, plan.test_messages_daily) < 0 then
    raise exception 'the price and the allowances must be 0 or more';
  end if;
end
$$;

comment on function core.check_plan_terms is
  'Raises an error if a plan cannot have its name, price or allowances.';
