create function core.plan_terms(plan app.plans)
returns jsonb
language sql immutable
as $$
  select to_jsonb(plan) - 'id'
$$;

comment on function core.plan_terms is 'What a plan is called, costs and includes, for the audit.';
