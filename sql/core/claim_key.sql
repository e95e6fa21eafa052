create function core.claim_key(organisation_id uuid, mode app.mode, key text, fingerprint text)
returns app.idempotency_keys
language plpgsql stable
set enable_seqscan = off
as $$
declare
  v_kept app.idempotency_keys;
begin
  select k.* into v_kept from core.stored_response(organisation_id, mode, key, core.now()) k;
  if v_kept.fingerprint <> claim_key.fingerprint then
    perform core.refuse('idempotency_conflict');
  end if;
  return v_kept;
end
$$;

comment on function core.claim_key is
  'Returns the stored response for an idempotency key, to be replayed. All fields are null if the call continues: the key is new, or there is none. Refuses idempotency_conflict. The caller has locked the organisation, and stores the response with core.store_response in the same transaction.';
