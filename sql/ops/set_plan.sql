create function ops.set_plan(organisation text, plan text)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
begin
  perform core.check_plan(plan);
  update app.organisations o set plan_id = plan where o.id = v_organisation;
end
$$;

comment on function ops.set_plan is 'Move an organisation to another plan, from the next request on.';
