-- Locks, in this order: organisations by id (only with complaints), messages by id, hard bounces by address,
-- suppressions by organisation and address, counters by organisation.
create function core.record_receipts(receipts jsonb, is_forwarded boolean default false)
returns text[]
language plpgsql volatile
set enable_seqscan = off
-- To plan for all partitions takes longer than to run: one generic plan, in which the bounds exclude partitions.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_ids uuid[];
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id uuid;
  v_last_id uuid;
  v_strays integer[];
  v_known integer;
  v_stray jsonb;
  v_types jsonb;
  v_stored core.stored_receipt[];
begin
  if exists (select from app.moved_organisations d where d.purged_at is null) then
    receipts := core.receipts_here(receipts, is_forwarded);
  end if;
  if receipts is null then
    return '{}';
  end if;
  v_ids := array(
    select r.message_id from jsonb_to_recordset(receipts) as r (message_id uuid)
    where r.message_id is not null
    order by r.message_id);
  v_first_id := v_ids[1];
  v_last_id := v_ids[cardinality(v_ids)];
  v_strays := core.stray_receipts(receipts, v_first_id, v_last_id);
  -- Leave out receipts that name a recipient to whom their email was not sent.
  if v_strays <> '{}' then
    select jsonb_agg(r.receipt) filter (where r.n = any (v_strays)),
      coalesce(jsonb_agg(r.receipt order by r.n) filter (where r.n <> all (v_strays)), '[]')
      into v_stray, receipts
    from jsonb_array_elements(receipts) with ordinality as r (receipt, n);
  end if;
  v_types := jsonb_path_query_array(receipts, '$[*].type');

  if v_types ? 'complained' then
    -- Of two transactions about one organisation, the second counts the complaints of the first.
    perform from app.organisations o
    where o.id in (
      select m.organisation_id
      from jsonb_to_recordset(receipts) as r (message_id uuid, type text)
      join app.messages m on m.id = r.message_id and m.id between v_first_id and v_last_id
      where r.type = 'complained' and m.mode = 'live' and not m.is_sandbox)
    order by o.id
    for no key update;
  end if;
  perform from app.messages m
  where m.id = any (v_ids) and m.id between v_first_id and v_last_id and m.mode = 'live'
  order by m.id
  for no key update;
  get diagnostics v_known = row_count;
  if v_known < cardinality(v_ids) and not is_forwarded then
    perform core.forward_unknown(receipts);
  end if;

  v_stored := core.store_receipts(receipts);
  -- Suppress after hard bounces, complaints and opt-outs.
  perform core.suppress_recipients(array(
    select s from unnest(v_stored) s
    where s.type in ('complained', 'opted_out') or s.type = 'bounced' and (s.detail -> 'isHard')::boolean));

  -- Change statuses.
  if v_types ? 'sent' then
    -- core.settle_attempts and core.apply_receipt_statuses both lock counters; this takes all of them in one order.
    perform core.lock_counters(array(
      select distinct m.organisation_id from app.messages m
      where m.id = any (v_ids) and m.id between v_first_id and v_last_id and m.mode = 'live' and m.status = 'queued'));
    perform core.settle_attempts(receipts);
  end if;
  perform core.apply_receipt_statuses(array(select distinct s.message_id from unnest(v_stored) s));

  -- Opt-outs change no status, but webhook events report them.
  if v_types ? 'opted_out' then
    perform core.emit_events(array(
      select (m.id, m.organisation_id, 'opted_out')::core.message_change
      from unnest(v_stored) s
      join app.messages m on m.id = s.message_id and m.id = any (v_ids)
      where s.type = 'opted_out'));
  end if;
  if v_types ? 'complained' then
    perform core.record_complaints(array(select s from unnest(v_stored) s where s.type = 'complained'));
  end if;
  if v_stray is not null then
    insert into app.stray_receipts as s (day, provider, receipts, last_message_id, last_at)
    select (core.now() at time zone 'UTC')::date, split_part(r.provider_event_id, ':', 1), count(*),
      (array_agg(r.message_id order by r.message_id desc))[1], core.now()
    from jsonb_to_recordset(v_stray) as r (message_id uuid, provider_event_id text)
    group by 2
    order by 2
    on conflict on constraint stray_receipts_pkey do update
      set receipts = s.receipts + excluded.receipts, last_message_id = excluded.last_message_id, last_at = excluded.last_at;
  end if;
  return array(select s.type::text from unnest(v_stored) s);
end
$$;

comment on function core.record_receipts is
  'Record what providers report of messages (core.receipt). Stores each receipt once; type sent is not stored and only settles an attempt without a known outcome. The status follows from all receipts of a message, so their order does not matter. Ignores receipts of unknown messages, which it gives to the other cells unless one of them sent them (is_forwarded), and those that name a recipient to whom their email was not sent (ops.stray_receipts). Complaints may pause the organisation. Returns the types of the receipts that were stored, one for each.';
