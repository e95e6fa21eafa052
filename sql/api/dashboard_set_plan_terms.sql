create function api.dashboard_set_plan_terms(
  session text, plan text, is_new boolean, name text, price_rand integer, emails_included integer,
  sms_included integer, domains_included integer, test_messages_daily integer
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_set_plan_terms.session);
  if dashboard_set_plan_terms.is_new then
    perform ops.create_plan(plan, name, price_rand, emails_included, sms_included, domains_included, test_messages_daily);
  else
    perform ops.set_plan_terms(plan, name, price_rand, emails_included, sms_included, domains_included, test_messages_daily);
  end if;
end
$$;

comment on function api.dashboard_set_plan_terms is
  'Create a plan (is_new) as ops.create_plan does, or change its terms as ops.set_plan_terms does, for an operator. Refuses as core.operator_of does.';
