create function core.find_plan(plan text)
returns app.plans
language plpgsql stable
as $$
declare
  v_plans app.plans[] := array(select p from app.plans p where p.id = plan);
begin
  if v_plans = '{}' then
    v_plans := array(select p from app.plans p where lower(p.name) = lower(plan));
  end if;
  perform core.check_is_one('plan', plan, array(select p.id from unnest(v_plans) p order by p.id),
    'select id, name from ops.plans');
  return v_plans[1];
end
$$;

comment on function core.find_plan is
  'Returns the plan with this ID, or this name in any case. Raises an error if there is none, or several.';
