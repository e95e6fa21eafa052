create function core.receipts_of_parts(receipts jsonb)
returns table (n bigint, receipt jsonb)
language sql stable
set enable_seqscan = off
as $$
  select distinct on (r.n) r.n, r.receipt - '{network_ids,phone,provider}'::text[] || jsonb_build_object(
    'message_id', p.message_id,
    'part', p.part,
    -- A final one counts once, however often it comes; of those that say why it takes so long, each reason.
    'provider_event_id', concat_ws(':', i.provider, p.part, i.type, case i.type when 'deferred' then i.code end))
  from jsonb_array_elements(receipts) with ordinality as r (receipt, n)
  cross join lateral jsonb_populate_record(null::core.sms_receipt, r.receipt) as i
  cross join lateral unnest(i.network_ids) with ordinality as s (network_id, place)
  cross join lateral (
    select p.message_id, p.part
    from app.sms_parts p
    where p.network_id = s.network_id
      and p.provider = i.provider
      -- Whose number was erased still has an outcome.
      and p.phone in (coalesce(i.phone, p.phone), '(erased)')
    -- Networks use their ids again in time: the part that was taken last is meant.
    order by p.taken_at desc, p.message_id desc, p.part
    limit 1
  ) p
  order by r.n, s.place
$$;

comment on function core.receipts_of_parts is
  'Those of these receipts (SmsReceipt of src/providers/sms.ts) whose part is known, by their place from 1 on, as core.record_receipts takes them. The first spelling that matches wins.';
