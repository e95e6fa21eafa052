create function ops.grant_credits(organisation text, credits integer, note text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_allowance app.allowances;
  v_balance bigint;
begin
  if grant_credits.credits is null or grant_credits.credits = 0 then
    raise exception 'credits must be a number other than 0; a negative number takes credits back';
  end if;
  if grant_credits.note is null or length(btrim(grant_credits.note)) = 0 or length(grant_credits.note) > 1000 then
    raise exception 'the note must be 1 to 1000 characters';
  end if;
  perform core.lock_organisations(array[v_organisation]);
  select a.* into v_allowance from app.allowances a where a.organisation_id = v_organisation;
  v_balance := v_allowance.sms_credits::bigint + grant_credits.credits;
  if v_balance < 0 then
    raise exception 'the organisation has only % left to take back', core.counted(v_allowance.sms_credits, 'credit');
  end if;
  -- The type leaves room for as many credits again to come back as refunds.
  if v_balance > 1000000000 then
    raise exception 'an organisation can have at most 1000000000 credits';
  end if;
  insert into app.credit_ledger (organisation_id, kind, credits, balance, period_start, note, created_at)
  values (v_organisation, 'grant', grant_credits.credits, v_balance, v_allowance.period_start, grant_credits.note, core.now());
  update app.allowances a set sms_credits = v_balance where a.organisation_id = v_organisation;
  perform core.audit('grant_credits', v_organisation, core.encode_id('org', v_organisation),
    jsonb_build_object('credits', v_allowance.sms_credits),
    jsonb_build_object('credits', v_balance, 'note', grant_credits.note));
  return v_balance;
end
$$;

comment on function ops.grant_credits is
  'Give an organisation prepaid SMS credits; return the new balance. One credit pays for one segment. A negative number takes credits back, at most those that are left. The note is recorded in ops.credit_ledger.';
