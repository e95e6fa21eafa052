create function ops.approve_sender(organisation text, sender text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
begin
  perform core.check_sender(approve_sender.sender);
  -- Locked, so that ops.set_shared_sender cannot take the number at the same moment.
  perform from app.sms_settings s for share;
  if core.is_phone(approve_sender.sender)
    and exists (select from app.sms_settings s where s.shared_sender = approve_sender.sender) then
    raise exception '% is the shared sender, which every organisation can use', approve_sender.sender;
  end if;
  insert into app.senders (organisation_id, sender, approved_at)
  values (v_organisation, approve_sender.sender, core.now())
  on conflict do nothing;
  if found then
    perform core.audit('approve_sender', v_organisation, approve_sender.sender, null,
      jsonb_build_object('approved_at', core.iso(core.now())));
  elsif not exists (
    select from app.senders s where s.organisation_id = v_organisation and s.sender = approve_sender.sender) then
    raise exception 'another organisation uses %', approve_sender.sender;
  end if;
end
$$;

comment on function ops.approve_sender is
  'Allow an organisation to send SMS from a sender ID. A sender ID is up to 11 letters, digits and spaces with at least one letter, or a phone number in E.164 that only this organisation uses.';
