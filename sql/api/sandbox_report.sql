create function api.sandbox_report()
returns integer
language plpgsql volatile security definer
set search_path = ''
as $$
declare
  v_receipts jsonb;
begin
  with due as (
    select s.message_id, s.copy, s.receipts
    from app.sandbox_messages s
    where s.due_at <= clock_timestamp()
    order by s.due_at
    limit 1000
    for update skip locked
  ),
  done as (
    update app.sandbox_messages s set due_at = null from due d where (s.message_id, s.copy) = (d.message_id, d.copy)
  )
  select jsonb_agg(r.receipt || jsonb_build_object(
      'message_id', d.message_id,
      'provider_event_id', 'sandbox:' || d.copy || '.' || r.place,
      -- The order within a message is the order of its receipts.
      'occurred_at', core.now() + r.place * interval '1 millisecond')) into v_receipts
  from due d
  cross join lateral jsonb_array_elements(d.receipts) with ordinality as r (receipt, place);
  if v_receipts is null then
    return 0;
  end if;
  return core.record_receipts(v_receipts);
end
$$;

comment on function api.sandbox_report is
  'The sandbox network reports what became of messages, as far as that is due. Answers how many receipts were recorded.';
