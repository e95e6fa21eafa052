create function core.claim_key(organisation_id uuid, mode app.mode, key text, fingerprint text)
returns app.idempotency_keys
language plpgsql stable
-- A plan made while the table was small must not scan it when it has grown.
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
  'What to replay to a call with that idempotency key, if anything: all of it null when the call is to go on, as without a key. Refuses idempotency_conflict. The organisation must be locked; core.store_response, in the same transaction, makes the key known.';
