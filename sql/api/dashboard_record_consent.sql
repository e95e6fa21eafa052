create function api.dashboard_record_consent(session text, organisation text, phone text, source text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_record_consent.session, dashboard_record_consent.organisation, 'member');
begin
  if not exists (
    select from app.consents c
    where c.organisation_id = v_organisation and c.phone = dashboard_record_consent.phone and c.opted_out_at is not null
  ) then
    perform core.refuse('not_found');
  end if;
  perform ops.record_consent(dashboard_record_consent.organisation, dashboard_record_consent.phone, dashboard_record_consent.source);
end
$$;

comment on function api.dashboard_record_consent is
  'End the opt-out of a number by a new consent as ops.record_consent does, for a member. Refuses as core.member_of does, and with not_found for a number that has not opted out.';
