create function ops.record_consent(organisation text, phone text, source text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before jsonb := core.consent(v_organisation, phone);
begin
  perform core.check_phone(record_consent.phone);
  if coalesce(length(record_consent.source), 0) not between 1 and 1000 then
    raise exception 'the source must be 1 to 1000 characters';
  end if;
  perform core.record_consents(v_organisation, array[record_consent.phone], array[record_consent.source]);
  perform core.audit('record_consent', v_organisation, record_consent.phone, v_before,
    core.consent(v_organisation, record_consent.phone));
end
$$;

comment on function ops.record_consent is
  'Record that the owner of a number agreed to marketing SMS. The source says where and how. An earlier opt-out ends.';
