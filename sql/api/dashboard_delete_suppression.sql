create function api.dashboard_delete_suppression(session text, organisation text, id text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_delete_suppression.session, dashboard_delete_suppression.organisation, 'member');
  v_entry app.suppressions := core.delete_suppression(v_organisation, dashboard_delete_suppression.id);
  v_other app.suppression_reason := v_entry.other_reasons[1];
begin
  perform core.audit('delete_suppression', v_organisation, v_entry.email,
    jsonb_build_object('reason', v_entry.reason), case when v_other is not null then jsonb_build_object('reason', v_other) end);
  return jsonb_build_object('email', v_entry.email, 'otherReason', v_other);
end
$$;

comment on function api.dashboard_delete_suppression is
  'Remove a suppression as core.delete_suppression does, for a member. Returns {email, otherReason}: the reason for which the address stays suppressed, or null. Refuses as core.member_of and core.delete_suppression do.';
