create function core.receipts_here(receipts jsonb, is_forwarded boolean)
returns jsonb
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_here jsonb;
  v_elsewhere jsonb;
begin
  select jsonb_agg(r.receipt order by r.n) filter (where d.organisation_id is null),
    jsonb_agg(r.receipt) filter (where d.organisation_id is not null)
    into v_here, v_elsewhere
  from jsonb_array_elements(receipts) with ordinality as r (receipt, n)
  left join lateral (
    select m.organisation_id from app.messages m where m.id = (r.receipt ->> 'message_id')::uuid limit 1
  ) m on true
  left join app.moved_organisations d on d.organisation_id = m.organisation_id;
  if v_elsewhere is not null and not is_forwarded then
    perform core.forward_receipts('receipt', v_elsewhere);
  end if;
  return v_here;
end
$$;

comment on function core.receipts_here is
  'Returns these receipts (core.receipt) without those of messages whose organisation moved to another cell, and forwards these unless another cell has done so; null if none is left.';
