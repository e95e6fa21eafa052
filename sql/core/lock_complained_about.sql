create function core.lock_complained_about(receipts jsonb)
returns void
-- Not language sql: its plan over all partitions would be made again at each call.
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  perform from app.organisations o
  where o.id in (
    select m.organisation_id
    from jsonb_to_recordset(receipts) as r (message_id uuid, type text)
    join app.messages m on m.id = r.message_id and m.mode = 'live' and not m.is_sandbox
    where r.type = 'complained')
  order by o.id
  for no key update;
end
$$;

comment on function core.lock_complained_about is
  'Lock the organisations about whose messages these receipts complain, in the order of their ids: of two transactions the second counts the complaints of the first. Called before any message is locked.';
