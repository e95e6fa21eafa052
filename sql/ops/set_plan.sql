create function ops.set_plan(organisation text, plan text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before text;
begin
  perform core.check_plan(plan);
  select o.plan_id into v_before from app.organisations o where o.id = v_organisation for no key update;
  -- Also closes a period that has ended, which is billed by the plan that it had.
  perform core.lock_organisations(array[v_organisation]);
  if v_before = plan then
    return;
  end if;
  update app.organisations o set plan_id = plan where o.id = v_organisation;
  insert into app.plan_changes (organisation_id, changed_at, from_plan, to_plan)
  values (v_organisation, core.now(), v_before, plan);
  perform core.audit('set_plan', v_organisation, organisation,
    jsonb_build_object('plan', v_before), jsonb_build_object('plan', plan));
end
$$;

comment on function ops.set_plan is
  'Move an organisation to another plan, from the next request on. What it has used in its period stays used; of a smaller plan less, or nothing, remains.';
