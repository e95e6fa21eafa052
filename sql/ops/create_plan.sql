create function ops.create_plan(
  id text, name text, price_rand integer, emails_included integer, sms_included integer, domains_included integer,
  test_messages_daily integer default 10000
)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb;
begin
  if create_plan.id is null or create_plan.id !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
    raise exception 'the ID must be 1 to 64 lower-case letters, digits, hyphens and underscores, and start with a letter or digit';
  end if;
  perform core.check_plan_terms(create_plan.name, price_rand, emails_included, sms_included, domains_included,
    test_messages_daily);
  insert into app.plans (id, name, price_rand, emails_included, sms_included, domains_included, test_messages_daily)
  values (create_plan.id, create_plan.name, create_plan.price_rand, create_plan.emails_included,
    create_plan.sms_included, create_plan.domains_included, create_plan.test_messages_daily)
  on conflict on constraint plans_pkey do nothing
  returning core.plan_terms(plans) into v_after;
  if v_after is null then
    raise exception 'a plan % already exists', quote_literal(create_plan.id);
  end if;
  perform core.audit('create_plan', null, create_plan.id, null, v_after);
  return create_plan.id;
end
$$;

comment on function ops.create_plan is
  'Create a plan and return its ID. The price is in rand a month. The plan includes numbers of email recipients and SMS segments a month and of sending domains, and limits test and sandbox messages a day.';
