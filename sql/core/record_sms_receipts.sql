create function core.record_sms_receipts(receipts jsonb, is_forwarded boolean default false)
returns integer
language plpgsql volatile
as $$
declare
  v_known jsonb;
  v_early jsonb;
  v_has_lock boolean := false;
  v_kept integer := 0;
begin
  loop
    select jsonb_agg(k.receipt) filter (where k.n is not null), jsonb_agg(r.receipt) filter (where k.n is null)
      into v_known, v_early
    from jsonb_array_elements(receipts) with ordinality as r (receipt, n)
    left join core.receipts_of_parts(receipts) k on k.n = r.n;
    exit when v_early is null or v_has_lock or is_forwarded;
    -- Wait for transactions that store parts at the moment: the second pass finds these parts. Later ones find
    -- the receipts that are stored here.
    perform pg_advisory_xact_lock(core.receipts_lock());
    v_has_lock := true;
  end loop;

  if v_early is not null and not is_forwarded then
    insert into app.early_receipts (id, network_ids, receipt, received_at)
    select md5(e.receipt::text)::uuid, array(select jsonb_array_elements_text(e.receipt -> 'network_ids')), e.receipt,
      core.now()
    from jsonb_array_elements(v_early) as e (receipt)
    -- The id is a hash of the content, so that a repeated receipt is stored once.
    on conflict do nothing;
    get diagnostics v_kept = row_count;
    -- Networks give the same ids, so another cell finds its part only with the phone.
    perform core.forward_receipts('sms_receipt', jsonb_path_query_array(v_early, '$[*] ? (@.phone != null)'));
  end if;
  return v_kept + cardinality(core.record_receipts(v_known, is_forwarded));
end
$$;

comment on function core.record_sms_receipts is
  'Record receipts for parts of SMS (core.sms_receipt). Receipts of parts that are not known wait in app.early_receipts until core.take_parts stores the part, and are given to the other cells; those from another cell (is_forwarded) are ignored. Returns how many were new.';
