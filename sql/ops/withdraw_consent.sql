create function ops.withdraw_consent(organisation text, phone text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before jsonb := core.consent(v_organisation, phone);
  v_author text := case current_setting('role')
    when 'postgram_service' then 'member ' || core.actor()
    else 'operator ' || session_user
  end;
begin
  perform core.check_phone(withdraw_consent.phone);
  insert into app.consents as c (organisation_id, phone, opted_out_at, opted_out_by)
  select v_organisation, withdraw_consent.phone, core.now(), left(v_author, 200)
  where not exists (
    select from core.suppressions_by_hash(withdraw_consent.phone) a
    where a.organisation_id = v_organisation and a.reason = 'opted_out')
  on conflict on constraint consents_pkey do update
  set opted_out_at = excluded.opted_out_at, opted_out_by = excluded.opted_out_by
  -- Keeps an earlier opt-out by the owner, which may be needed as evidence.
  where c.opted_out_at is null;
  perform core.audit('withdraw_consent', v_organisation, withdraw_consent.phone, v_before,
    core.consent(v_organisation, withdraw_consent.phone));
end
$$;

comment on function ops.withdraw_consent is
  'Opt a number out of an organisation''s marketing SMS. The owner of the number need not have agreed before.';
