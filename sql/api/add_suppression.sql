create function api.add_suppression(
  organisation_id uuid, mode text, fingerprint text, email text, reason text, note text, key text default null
)
returns api.reply
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept app.idempotency_keys;
  v_entry app.suppressions;
  v_id uuid := core.new_id(core.now());
  v_status smallint;
  v_body text;
begin
  perform core.lock_organisations(array[organisation_id]);
  v_kept := core.claim_key(organisation_id, mode::app.mode, key, fingerprint);
  if v_kept.status is not null then
    return (v_kept.status, v_kept.body, true);
  end if;

  insert into app.suppressions as s (id, organisation_id, email, reason, note, created_at)
  values (v_id, organisation_id, email, reason::app.suppression_reason, note, core.now())
  -- The update changes nothing, but locks and returns the existing entry, even one that a concurrent bounce inserts.
  on conflict on constraint suppressions_one_per_address do update set email = excluded.email
  returning s.* into v_entry;

  -- manual blocks all email, unsubscribe only marketing.
  if v_entry.reason = 'unsubscribe' and reason = 'manual' then
    update app.suppressions s
    set reason = 'manual', other_reasons = s.other_reasons || s.reason, message_id = null, note = add_suppression.note
    where s.organisation_id = v_entry.organisation_id and s.id = v_entry.id
    returning s.* into v_entry;
  end if;

  v_status := case v_entry.id when v_id then 201 else 200 end;
  v_body := core.suppression_object(v_entry);
  perform core.store_response(organisation_id, mode::app.mode, key, fingerprint, v_status, v_body);
  return (v_status, v_body, false);
end
$$;

comment on function api.add_suppression is
  'Suppress an address (in lower case) for an organisation. Returns 201 with the new entry, or 200 with the existing one; that changes only if manual replaces unsubscribe. reason: manual or unsubscribe. Refuses idempotency_conflict.';
