create function ops.set_plan(organisation text, plan text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_plan text := (core.find_plan(plan)).id;
  v_before text;
begin
  select o.plan_id into v_before from app.organisations o where o.id = v_organisation for no key update;
  -- This also closes a period that has ended, so that it is billed by the old plan.
  perform core.lock_organisations(array[v_organisation]);
  if v_before = v_plan then
    return;
  end if;
  update app.organisations o set plan_id = v_plan where o.id = v_organisation;
  insert into app.plan_changes (organisation_id, changed_at, from_plan, to_plan)
  values (v_organisation, core.now(), v_before, v_plan);
  perform core.audit('set_plan', v_organisation, core.encode_id('org', v_organisation),
    jsonb_build_object('plan', v_before), jsonb_build_object('plan', v_plan));
end
$$;

comment on function ops.set_plan is
  'Move an organisation to another plan. The plan applies immediately. Usage of the current period still counts, so a smaller plan may have little or nothing left.';
