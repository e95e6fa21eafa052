create function api.dashboard_add_suppressions(session text, organisation text, reason text, emails text[], notes text[])
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_add_suppressions.session, dashboard_add_suppressions.organisation, 'member');
  v_added integer;
begin
  perform core.lock_organisations(array[v_organisation]);
  select count(*) filter (where a.is_new) into v_added
  from core.add_suppressions(v_organisation, dashboard_add_suppressions.reason::app.suppression_reason,
    dashboard_add_suppressions.emails, dashboard_add_suppressions.notes) a;
  perform core.audit('add_suppressions', v_organisation,
    case cardinality(dashboard_add_suppressions.emails) when 1 then dashboard_add_suppressions.emails[1] end, null,
    case when cardinality(dashboard_add_suppressions.emails) > 0 then
      jsonb_build_object('reason', dashboard_add_suppressions.reason,
        'given', cardinality(dashboard_add_suppressions.emails), 'added', v_added)
    end);
  return v_added;
end
$$;

comment on function api.dashboard_add_suppressions is
  'Suppress addresses as core.add_suppressions does, for a member. reason: manual or unsubscribe. Returns how many were not in the list. The audit names the address if there is one, else it has their number. Refuses as core.member_of does.';
