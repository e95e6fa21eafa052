create function ops.revoke_sender(organisation text, sender text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before jsonb;
begin
  delete from app.senders s where s.organisation_id = v_organisation and s.sender = revoke_sender.sender
  returning jsonb_build_object('approved_at', core.iso(s.approved_at)) into v_before;
  if not found then
    raise exception '% is not a sender ID of the organisation', coalesce(quote_literal(revoke_sender.sender), 'null')
      using hint = 'select sender from ops.senders';
  end if;
  perform core.audit('revoke_sender', v_organisation, revoke_sender.sender, v_before, null);
end
$$;

comment on function ops.revoke_sender is
  'Remove a sender ID from an organisation. New requests cannot use it; SMS already accepted are still sent.';
