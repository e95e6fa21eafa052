create function core.set_state(action text, organisation text, reason text default null)
returns uuid
language plpgsql volatile
as $$
declare
  v_id uuid := core.organisation_id(organisation);
  v_is_pause boolean := action in ('pause', 'resume');
  v_begins boolean := action in ('pause', 'suspend');
  v_before app.organisations;
  v_after app.organisations;
  v_is_in_state boolean;
  v_state app.organisation_state;
begin
  if v_begins and coalesce(length(reason), 0) not between 1 and 1000 then
    raise exception 'the reason must be 1 to 1000 characters';
  end if;
  select o.* into v_before from app.organisations o where o.id = v_id for no key update;
  v_is_in_state := case when v_is_pause then v_before.paused_at else v_before.suspended_at end is not null;
  if v_is_in_state = v_begins then
    -- An organisation that is both paused and suspended: name the state that blocks this action.
    v_state := case when not v_begins then v_before.state when v_is_pause then 'paused' else 'suspended' end;
    raise exception 'the organisation is %', case
        when v_begins then 'already ' || v_state
        else format('%s, not %s', v_state, case when v_is_pause then 'paused' else 'suspended' end)
      end
      using hint = case v_state
        when 'paused' then format('select ops.resume(%L) ends the pause', core.encode_id('org', v_id))
        when 'suspended' then format('select ops.reinstate(%L) ends the suspension', core.encode_id('org', v_id))
        else 'select id, name, state from ops.organisations'
      end;
  end if;
  update app.organisations o
  set paused_at = case when v_is_pause then case when v_begins then core.now() end else o.paused_at end,
    pause_reason = case when v_is_pause then reason else o.pause_reason end,
    suspended_at = case when v_is_pause then o.suspended_at when v_begins then core.now() end,
    suspension_reason = case when v_is_pause then o.suspension_reason else reason end,
    activated_at = case when v_begins then o.activated_at else core.now() end
  where o.id = v_id
  returning o.* into v_after;
  perform core.audit(action, v_id, core.encode_id('org', v_id),
    jsonb_build_object('state', v_before.state,
      'reason', case when v_is_pause then v_before.pause_reason else v_before.suspension_reason end),
    jsonb_build_object('state', v_after.state, 'reason', reason));
  return v_id;
end
$$;

comment on function core.set_state is
  'Begin or end an organisation''s pause (actions pause and resume) or suspension (actions suspend and reinstate). Pause and suspension are independent. Raises an error if the action changes nothing. Returns the organisation''s UUID.';
