create function core.set_state(
  action text, organisation text, to_state app.organisation_state, reason text, from_states app.organisation_state[]
)
returns uuid
language plpgsql volatile
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before app.organisations;
begin
  if to_state <> 'active' and coalesce(length(reason), 0) not between 1 and 1000 then
    raise exception 'give a reason of 1 to 1000 characters';
  end if;
  select o.* into v_before from app.organisations o where o.id = v_organisation for no key update;
  if not v_before.state = any (from_states) then
    raise exception 'the organisation is %', v_before.state
      using hint = case v_before.state
        when 'paused' then format('select ops.resume(%L) lifts its pause', organisation)
        when 'suspended' then format('select ops.reinstate(%L) ends its suspension', organisation)
        else 'select id, name, state from ops.organisations'
      end;
  end if;
  update app.organisations o
  set state = to_state, state_reason = reason, state_since = core.now()
  where o.id = v_organisation;
  perform core.audit(action, v_organisation, organisation,
    jsonb_build_object('state', v_before.state, 'reason', v_before.state_reason),
    jsonb_build_object('state', to_state, 'reason', reason));
  return v_organisation;
end
$$;

comment on function core.set_state is 'Change an organisation''s state from one of some others, in the name of that action; raises one sentence otherwise.';
