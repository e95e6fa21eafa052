create function api.dashboard_suppress_recipient(session text, organisation text, message text, email text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_suppress_recipient.session, dashboard_suppress_recipient.organisation, 'member');
  m app.messages := core.message_of(v_organisation, dashboard_suppress_recipient.message);
  v_email text := lower(dashboard_suppress_recipient.email);
  v_before jsonb;
  v_reason text;
begin
  if m.channel <> 'email' or not (v_email = any (coalesce(
    (select b.recipients from app.bodies b where b.message_id = m.id), string_to_array(lower(m.to_address), ', ')))) then
    perform core.refuse('not_found');
  end if;
  perform core.lock_organisations(array[v_organisation]);
  v_before := (
    select jsonb_build_object('reason', s.reason) from app.suppressions s
    where s.organisation_id = v_organisation and s.email = v_email);
  select (a.entry).reason into v_reason
  from core.add_suppressions(v_organisation, 'manual', array[v_email],
    array['Recipient of ' || dashboard_suppress_recipient.message]) a;
  perform core.audit('add_suppression', v_organisation, v_email, v_before, jsonb_build_object('reason', v_reason));
end
$$;

comment on function api.dashboard_suppress_recipient is
  'Suppress a recipient of an email for its organisation, for a member. Refuses as core.member_of and core.message_of do, and with not_found for an address that is no recipient.';
