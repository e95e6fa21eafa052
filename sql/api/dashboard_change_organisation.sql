create function api.dashboard_change_organisation(
  session text, organisation text, action text, value text default null, note text default null
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_change_organisation.session);
  case dashboard_change_organisation.action
    when 'set_plan' then perform ops.set_plan(dashboard_change_organisation.organisation, value);
    when 'grant_credits' then
      perform ops.grant_credits(dashboard_change_organisation.organisation, value::integer, note);
    when 'pause' then perform ops.pause(dashboard_change_organisation.organisation, note);
    when 'resume' then perform ops.resume(dashboard_change_organisation.organisation);
    when 'suspend' then perform ops.suspend(dashboard_change_organisation.organisation, note);
    when 'reinstate' then perform ops.reinstate(dashboard_change_organisation.organisation);
  end case;
end
$$;

comment on function api.dashboard_change_organisation is
  'Do as an operator what the function of ops with the name of the action does: set_plan (value: the plan), grant_credits (value: the number, note), pause and suspend (note: the reason), resume, reinstate. Refuses as core.operator_of does.';
