create function core.check_plan(plan text)
returns void
language plpgsql stable
as $$
begin
  if not exists (select from app.plans p where p.id = plan) then
    raise exception 'there is no plan %', coalesce(quote_literal(plan), 'null')
      using hint = 'select id, name from ops.plans';
  end if;
end
$$;

comment on function core.check_plan is 'Raise one sentence when there is no such plan.';
