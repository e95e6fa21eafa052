create function api.dashboard_plans(session text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_plans.session);
  return (select coalesce(jsonb_agg(to_jsonb(p) order by p.price_rand, p.id), '[]') from ops.plans p);
end
$$;

comment on function api.dashboard_plans is 'Returns the rows of ops.plans. Refuses as core.operator_of does.';
