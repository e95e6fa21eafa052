create function core.store_receipts(receipts jsonb)
returns core.stored_receipt[]
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_stored core.stored_receipt[];
begin
  with stored as (
    insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
    select m.id, r.type, r.occurred_at, r.provider_event_id, jsonb_strip_nulls(
      jsonb_build_object('recipient', r.recipient, 'part', r.part, 'word', r.word, 'code', r.code, 'text', r.text,
        'isHard', r.is_hard))
    from jsonb_populate_recordset(null::core.receipt, receipts) as r
    join app.messages m on m.id = r.message_id and m.mode = 'live'
    where r.type <> 'sent'
    on conflict on constraint events_stored_once do nothing
    returning message_id, type, detail
  )
  select array_agg((s.message_id, s.type, s.detail)::core.stored_receipt) into v_stored from stored s;
  return coalesce(v_stored, '{}');
end
$$;

comment on function core.store_receipts is
  'Store receipts as events of their messages, each once, apart from those of type sent. Returns those that had not come before.';
