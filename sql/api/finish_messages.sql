-- Locks, in this order: core.receipts_lock (shared, only for parts of SMS), messages by id, counters by
-- organisation, and for refunds allowances by organisation.
create function api.finish_messages(results jsonb)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- To plan for all partitions takes longer than to run: one generic plan, in which the bounds exclude partitions.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := core.now();
  v_has_parts boolean := jsonb_path_exists(results, '$[*].parts[*]');
  v_attempts core.judged_attempt[];
  v_dequeued uuid[];
  v_failed_sms uuid[];
  v_changes core.message_change[];
  v_early jsonb;
begin
  if v_has_parts then
    perform pg_advisory_xact_lock_shared(core.receipts_lock());
  end if;
  v_attempts := core.judge_attempts(results, v_now);
  perform core.store_attempts(v_attempts, v_now);

  -- Report the changes before early receipts are applied, which may change the same messages again.
  select array_agg(a.message_id) filter (where a.was_queued and a.verdict in ('sent', 'failed')),
    array_agg(a.message_id) filter (where a.channel = 'sms' and a.verdict = 'failed'),
    array_agg((a.message_id, a.organisation_id, a.verdict)::core.message_change)
      filter (where a.verdict = 'sent' and not a.was_sent or a.verdict = 'failed')
    into v_dequeued, v_failed_sms, v_changes
  from unnest(v_attempts) a;
  perform core.record_status_changes(v_changes);
  perform core.emit_events(v_changes);

  -- Store the parts that networks took, and find the receipts of these parts that came before.
  if v_has_parts then
    v_early := core.take_parts(results);
  end if;
  if v_early is not null then
    -- core.count_dequeued and core.record_receipts both lock counters; this takes all of them in one order.
    perform core.lock_counters(array(select distinct a.organisation_id from unnest(v_attempts) a));
  end if;

  -- Count, and apply what the provider reported.
  perform core.count_dequeued(v_dequeued);
  perform core.record_provider_health(results);
  if jsonb_path_exists(results, '$[*].settled_recipients') or jsonb_path_exists(results, '$[*].refused') then
    perform core.settle_recipients(results);
  end if;
  if v_early is not null then
    perform core.record_receipts(v_early);
  end if;
  if v_failed_sms is not null then
    perform core.refund_sms(array(select f.id from unnest(v_failed_sms) as f (id) where not core.may_have_left(f.id)));
  end if;
  return coalesce(cardinality(v_dequeued), 0);
end
$$;

comment on function api.finish_messages is
  'Record the results of attempts. A result that is deferred or ambiguous is attempted again for 24 hours, by default after a delay that grows with the attempts; an ambiguous marketing SMS fails instead. An SMS that failed and cannot have left is refunded. A repeated result changes nothing, except that an ambiguous one may defer a message once more. Returns how many messages left the queue.';
