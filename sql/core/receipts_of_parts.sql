create function core.receipts_of_parts(receipts jsonb)
returns table (n bigint, receipt jsonb)
language sql stable
set enable_seqscan = off
as $$
  select distinct on (r.n) r.n, r.receipt - '{network_ids,phone,provider}'::text[] || jsonb_build_object(
    'message_id', p.message_id,
    'part', p.part,
    -- A final receipt counts once, however often it comes; a deferral counts once for each reason.
    'provider_event_id', concat_ws(':', i.provider, p.part, i.type, case i.type when 'deferred' then i.code end))
  from jsonb_array_elements(receipts) with ordinality as r (receipt, n)
  cross join lateral jsonb_populate_record(null::core.sms_receipt, r.receipt) as i
  cross join lateral unnest(i.network_ids) with ordinality as s (network_id, place)
  cross join lateral (
    select p.message_id, p.part
    from app.sms_parts p
    where p.network_id = s.network_id
      and p.provider = i.provider
      -- An SMS to a person who was erased still gets its outcome.
      and p.phone in (coalesce(i.phone, p.phone), '(erased)')
    -- Networks reuse their ids after a while: the part that was taken last is meant.
    order by p.taken_at desc, p.message_id desc, p.part
    limit 1
  ) p
  order by r.n, s.place
$$;

comment on function core.receipts_of_parts is
  'Returns those of these receipts (core.sms_receipt) whose part is known, as core.record_receipts reads them, with their place from 1. The first spelling of the network id that matches wins.';
