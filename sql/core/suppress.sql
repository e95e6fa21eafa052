create function core.suppress(
  organisation_id uuid, id uuid, email text, reason app.suppression_reason, note text
)
returns app.suppressions
language plpgsql volatile
as $$
declare
  v_entry app.suppressions;
begin
  insert into app.suppressions as s (id, organisation_id, email, reason, note, created_at)
  values (suppress.id, suppress.organisation_id, suppress.email, suppress.reason, suppress.note, core.now())
  -- The update changes nothing, but locks and returns the existing entry, even one that a concurrent bounce inserts.
  on conflict on constraint suppressions_one_per_address do update set email = excluded.email
  returning s.* into v_entry;

  -- manual blocks all email, unsubscribe only marketing.
  if v_entry.reason = 'unsubscribe' and suppress.reason = 'manual' then
    update app.suppressions s
    set reason = 'manual', other_reasons = s.other_reasons || s.reason, message_id = null, note = suppress.note
    where s.organisation_id = v_entry.organisation_id and s.id = v_entry.id
    returning s.* into v_entry;
  end if;
  return v_entry;
end
$$;

comment on function core.suppress is
  'Suppress an address (in lower case) for an organisation that the caller has locked. Returns its entry: a new one with the given ID, or the existing one; that changes only if manual replaces unsubscribe.';
