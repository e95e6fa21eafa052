create function ops.set_plan_terms(
  plan text, name text default null, price_rand integer default null,
  emails_included integer default null, sms_included integer default null, domains_included integer default null,
  test_messages_daily integer default null
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_plan text := (core.find_plan(plan)).id;
  v_before app.plans;
  v_after app.plans;
begin
  if num_nonnulls(name, price_rand, emails_included, sms_included, domains_included, test_messages_daily) = 0 then
    raise exception 'give at least one of name, price_rand, emails_included, sms_included, domains_included and test_messages_daily';
  end if;
  -- This closes periods that have ended, which are billed by the old terms, and keeps others from closing any.
  perform core.lock_organisations(array(select o.id from app.organisations o where o.plan_id = v_plan));
  select p.* into v_before from app.plans p where p.id = v_plan for no key update;
  v_after := (v_plan, coalesce(name, v_before.name), coalesce(price_rand, v_before.price_rand),
    coalesce(emails_included, v_before.emails_included), coalesce(sms_included, v_before.sms_included),
    coalesce(domains_included, v_before.domains_included),
    coalesce(test_messages_daily, v_before.test_messages_daily));
  perform core.check_plan_terms(v_after);
  update app.plans p
  set (name, price_rand, emails_included, sms_included, domains_included, test_messages_daily) =
    (v_after.name, v_after.price_rand, v_after.emails_included, v_after.sms_included, v_after.domains_included,
      v_after.test_messages_daily)
  where p.id = v_plan;
  perform core.audit('set_plan_terms', null, v_plan, to_jsonb(v_before) - 'id', to_jsonb(v_after) - 'id');
end
$$;

comment on function ops.set_plan_terms is
  'Change the name, price or allowances of a plan. Arguments left out stay as they are. The change applies immediately to every organisation on the plan. The current billing period is billed by the new terms; closed periods keep the old terms.';
