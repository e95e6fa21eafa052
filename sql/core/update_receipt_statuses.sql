create function core.update_receipt_statuses(verdicts core.receipt_verdict[])
returns void
language plpgsql volatile
set enable_seqscan = off
-- A plan does not know how many rows an array holds: a loop over all verdicts for each message would be too slow.
set enable_nestloop = off
as $$
declare
  v_ids constant uuid[] := array(select v.message_id from unnest(verdicts) v order by v.message_id);
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id constant uuid := v_ids[1];
  v_last_id constant uuid := v_ids[cardinality(v_ids)];
begin
  update app.messages m
  set status = v.status, delivered_at = v.delivered_at, error_code = v.error_code, error_message = v.error_message,
    -- It was sent, though the result of its attempt is still to come, or was lost in a crash.
    sent_at = coalesce(m.sent_at, m.attempt_started_at, core.now())
  from unnest(verdicts) v
  where m.id = any (v_ids) and m.id between v_first_id and v_last_id and m.id = v.message_id
    and (m.status, m.delivered_at, m.error_code, m.error_message)
      is distinct from (v.status, v.delivered_at, v.error_code, v.error_message);
end
$$;

comment on function core.update_receipt_statuses is
  'Update messages, which must be locked, with the statuses that their receipts decide.';
