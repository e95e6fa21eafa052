create function api.add_suppression(
  organisation_id uuid, mode text, fingerprint text, email text, reason text, note text, key text default null
)
returns api.reply
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept app.idempotency_keys;
  v_added record;
  v_status smallint;
  v_body text;
begin
  perform core.lock_organisations(array[organisation_id]);
  v_kept := core.claim_key(organisation_id, mode::app.mode, key, fingerprint);
  if v_kept.status is not null then
    return (v_kept.status, v_kept.body, true);
  end if;

  select a.entry, a.is_new into v_added
  from core.add_suppressions(organisation_id, reason::app.suppression_reason, array[email], array[note]) a;
  v_status := case when v_added.is_new then 201 else 200 end;
  v_body := core.suppression_object(v_added.entry);
  perform core.store_response(organisation_id, mode::app.mode, key, fingerprint, v_status, v_body);
  return (v_status, v_body, false);
end
$$;

comment on function api.add_suppression is
  'Suppress an address (in lower case) for an organisation. Returns 201 with the new entry, or 200 with the existing one; that changes only if manual replaces unsubscribe. reason: manual or unsubscribe. Refuses idempotency_conflict.';
