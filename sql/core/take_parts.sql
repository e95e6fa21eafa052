create function core.take_parts(results jsonb)
returns jsonb
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(select r.id from jsonb_to_recordset(results) as r (id uuid));
  v_network_ids text[];
  v_early app.early_receipts[];
  v_receipts jsonb;
begin
  with taken as (
    insert into app.sms_parts (message_id, part, provider, network_id, phone, taken_at)
    select m.id, p.part, r.provider, p.network_id, m.to_address, core.now()
    from jsonb_populate_recordset(null::core.attempt_result, results) as r
    cross join lateral unnest(r.parts) as p
    join app.messages m on m.id = r.id
    where m.id = any (v_ids)
    order by m.id, p.part
    on conflict (message_id, part) do nothing
    returning network_id
  )
  select array_agg(t.network_id) into v_network_ids from taken t;

  -- Find the receipts that came before these parts.
  select array_agg(e order by e.received_at, e.id) into v_early
  from core.early_receipts_for(v_network_ids) e;
  if v_early is null then
    return null;
  end if;

  -- Delete them, and return them with their message and part.
  with found as (
    select f.n, f.receipt
    from core.receipts_of_parts(
      (select jsonb_agg(e.receipt order by e.place)
       from unnest(v_early) with ordinality as e (id, network_ids, receipt, received_at, place))) f
  ),
  used as (
    delete from app.early_receipts e
    using found f
    where e.id = v_early[f.n].id
  )
  select jsonb_agg(f.receipt) into v_receipts from found f;
  return v_receipts;
end
$$;

comment on function core.take_parts is
  'Store the parts of SMS that networks took (core.attempt_result). The messages must be locked, and core.receipts_lock taken. Returns the receipts that came before their parts, for core.record_receipts; null when there are none.';
