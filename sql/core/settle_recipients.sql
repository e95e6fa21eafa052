create function core.settle_recipients(results jsonb)
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(select r.id from jsonb_to_recordset(results) as r (id uuid));
  v_refusals jsonb;
begin
  -- Add the recipients whose copies are settled. An attempt that ends late may know of fewer, so none is removed.
  update app.bodies b
  set settled_recipients = array(select distinct unnest(b.settled_recipients || r.settled_recipients))
  from jsonb_populate_recordset(null::core.attempt_result, results) as r
  where b.message_id = any (v_ids) and b.message_id = r.id
    and r.outcome in ('deferred', 'ambiguous') and cardinality(r.settled_recipients) > 0;

  -- Record each recipient that the provider refused for good as a receipt, whose id makes it count once.
  select jsonb_agg(jsonb_build_object('message_id', r.id, 'type', 'failed', 'occurred_at', core.now(),
      'provider_event_id', 'refused:' || f.recipient, 'recipient', f.recipient, 'code', f.code, 'text', f.text))
    into v_refusals
  from jsonb_populate_recordset(null::core.attempt_result, results) as r
  cross join lateral unnest(r.refused) as f;
  perform core.record_receipts(v_refusals);

  -- Apply the receipts that came while other copies were still to be sent.
  perform core.apply_receipt_statuses(array(
    select r.id from jsonb_populate_recordset(null::core.attempt_result, results) as r
    where r.outcome = 'sent' and r.settled_recipients is not null));
end
$$;

comment on function core.settle_recipients is
  'Record what an attempt settled for some of its recipients (core.attempt_result). A recipient whose copy is settled gets no other copy; a recipient that the provider refused for good has failed.';
