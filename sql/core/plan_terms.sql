create function core.plan_terms(plan app.plans)
returns jsonb
language sql immutable
as $$
  select to_jsonb(plan) - 'id'
$$;

comment on function core.plan_terms is 'Returns the name, price and allowances of a plan, for the audit.';
