create function ops.set_shared_sender(sender text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holder uuid;
  v_before text;
begin
  perform core.check_sender(set_shared_sender.sender);
  select s.shared_sender into v_before from app.sms_settings s for no key update;
  select s.organisation_id into v_holder
  from app.senders s
  where s.sender = set_shared_sender.sender and core.is_phone(s.sender);
  if found then
    raise exception 'the organisation % uses %; revoke it first', core.encode_id('org', v_holder), set_shared_sender.sender;
  end if;
  update app.sms_settings s set shared_sender = set_shared_sender.sender;
  perform core.audit('set_shared_sender', null, null, jsonb_build_object('shared_sender', v_before),
    jsonb_build_object('shared_sender', set_shared_sender.sender));
end
$$;

comment on function ops.set_shared_sender is
  'Set the sender of SMS whose caller names none. It is up to 11 letters, digits and spaces with at least one letter, or a phone number in E.164 that no organisation holds.';
