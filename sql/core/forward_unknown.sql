create function core.forward_unknown(receipts jsonb)
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  if not exists (select from app.cells) then
    return;
  end if;
  perform core.forward_receipts('receipt', (
    select jsonb_agg(r.receipt)
    from jsonb_array_elements(receipts) as r (receipt)
    where r.receipt ->> 'message_id' is not null
      and not exists (select from app.messages m where m.id = (r.receipt ->> 'message_id')::uuid)));
end
$$;

comment on function core.forward_unknown is
  'Give those of these receipts (core.receipt) whose message is not known to the other cells, if there are any.';
