create function core.stray_receipts(receipts jsonb, first_id uuid, last_id uuid)
returns integer[]
-- In plpgsql, because a function in SQL would be planned over all partitions at each call.
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return array(
    select r.n
    from rows from (jsonb_to_recordset(receipts) as (message_id uuid, type text, recipient text))
      with ordinality as r (message_id, type, recipient, n)
    cross join lateral (
      select m.to_address from app.messages m
      where m.id = r.message_id and m.id between first_id and last_id and m.channel = 'email'
      limit 1
    ) m
    left join lateral (
      select b.recipients from app.bodies b
      where b.message_id = r.message_id and b.message_id between first_id and last_id
      limit 1
    ) b on true
    where r.recipient is not null
      and lower(r.recipient) <> all (coalesce(b.recipients, string_to_array(lower(m.to_address), ', ')))
      -- Once the body has expired or was erased, recipients in cc and bcc are not known, and a complaint may
      -- come from one of them. A bounce comes within days, and suppresses for every organisation.
      and (b.recipients is not null or r.type = 'bounced'));
end
$$;

comment on function core.stray_receipts is
  'Returns the positions, from 1, of receipts that name a recipient that the email was not sent to. All message IDs are between first_id and last_id.';
