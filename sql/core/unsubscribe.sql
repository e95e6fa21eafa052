create function core.unsubscribe(organisation_id uuid, email text, message_id uuid)
returns text
language plpgsql volatile
as $$
declare
  v_now timestamptz := core.now();
begin
  if exists (select from app.moved_organisations d where d.organisation_id = unsubscribe.organisation_id) then
    perform core.forward_receipts('unsubscribe', jsonb_build_array(jsonb_build_object(
      'organisation_id', unsubscribe.organisation_id, 'email', unsubscribe.email, 'message_id', unsubscribe.message_id)));
    return (select o.name from app.organisations o where o.id = unsubscribe.organisation_id);
  end if;
  -- The message before the allowance, as a refund and ops.retry_message lock them.
  perform from app.messages m where m.id = unsubscribe.message_id for no key update;
  perform core.lock_organisations(array[unsubscribe.organisation_id]);
  if exists (
    -- An erased person who has unsubscribed before is not stored again.
    select from core.suppressions_by_hash(unsubscribe.email) a
    where a.organisation_id = unsubscribe.organisation_id and a.reason = 'unsubscribe'
  ) then
    return (select o.name from app.organisations o where o.id = unsubscribe.organisation_id);
  end if;
  insert into app.events (message_id, type, occurred_at, detail)
  select m.id, 'opted_out', v_now, jsonb_build_object('recipient', unsubscribe.email)
  from app.messages m
  where m.id = unsubscribe.message_id
    and not exists (
      select from app.events e
      where e.message_id = m.id and e.type = 'opted_out' and e.detail ->> 'recipient' = unsubscribe.email);

  insert into app.suppressions as s (id, organisation_id, email, reason, message_id, created_at)
  select core.new_id(v_now), o.id, unsubscribe.email, 'unsubscribe', unsubscribe.message_id, v_now
  from app.organisations o
  where o.id = unsubscribe.organisation_id
  -- An address that is listed for another reason keeps unsubscribe among its other reasons.
  on conflict on constraint suppressions_one_per_address do update set other_reasons = s.other_reasons || excluded.reason
    where s.reason <> 'unsubscribe' and 'unsubscribe' <> all (s.other_reasons);

  return (select o.name from app.organisations o where o.id = unsubscribe.organisation_id);
end
$$;

comment on function core.unsubscribe is
  'Suppress marketing from an organisation to an address, as the comment on api.unsubscribe says. Gives what is about an organisation that moved to the other cells.';
