create function core.record_receipts(receipts jsonb)
returns text[]
language plpgsql volatile
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_all constant uuid[] := array(
    select r.message_id from jsonb_to_recordset(receipts) as r (message_id uuid)
    where r.message_id is not null
    order by r.message_id);
  -- By an array alone no partition is passed over; by these bounds those are that hold none of the ids.
  v_first_id constant uuid := v_all[1];
  v_last_id constant uuid := v_all[cardinality(v_all)];
  v_places constant integer[] := core.stray_receipts(receipts, v_first_id, v_last_id);
  v_stray jsonb;
  v_ids uuid[];
  v_stored text[];
  v_complaints jsonb;
  v_opted_out uuid[];
  v_types jsonb := jsonb_path_query_array(receipts, '$[*].type');
begin
  if v_places <> '{}' then
    select jsonb_agg(r.receipt) filter (where r.n = any (v_places)),
      coalesce(jsonb_agg(r.receipt order by r.n) filter (where r.n <> all (v_places)), '[]')
      into v_stray, receipts
    from jsonb_array_elements(receipts) with ordinality as r (receipt, n);
    v_types := jsonb_path_query_array(receipts, '$[*].type');
  end if;

  -- Organisations before all else: of two transactions with complaints about one, the second must
  -- see those of the first when it judges it. Without complaints nothing of this is locked.
  if v_types ? 'complained' then
    perform from app.organisations o
    where o.id in (
      select m.organisation_id
      from jsonb_to_recordset(receipts) as r (message_id uuid, type text)
      join app.messages m on m.id = r.message_id and m.mode = 'live' and not m.is_sandbox
      where r.type = 'complained')
    order by o.id
    for no key update;
  end if;

  -- In the order of their ids, as every writer of messages locks them.
  perform from app.messages m
  where m.id = any (v_all) and m.id between v_first_id and v_last_id and m.mode = 'live'
  order by m.id
  for no key update;

  with fresh as (
    insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
    select m.id, r.type, r.occurred_at, r.provider_event_id, jsonb_strip_nulls(
      jsonb_build_object('recipient', r.recipient, 'part', r.part, 'word', r.word, 'code', r.code, 'text', r.text,
        'isHard', r.is_hard))
    from jsonb_populate_recordset(null::core.receipt, receipts) as r
    join app.messages m on m.id = r.message_id and m.mode = 'live'
    where r.type <> 'sent'
    on conflict on constraint events_stored_once do nothing
    returning message_id, type, detail
  ),
  suppressed as (
    select core.suppress_recipients(jsonb_agg(to_jsonb(f))) from fresh f
    where f.type in ('complained', 'opted_out') or f.type = 'bounced' and (f.detail -> 'isHard')::boolean
  )
  select array_agg(distinct f.message_id), array_agg(f.type::text), jsonb_agg(to_jsonb(f)) filter (where f.type = 'complained'),
    array_agg(f.message_id) filter (where f.type = 'opted_out')
    into v_ids, v_stored, v_complaints, v_opted_out
  from fresh f
  where (select count(*) from suppressed) >= 0;

  if v_types ? 'sent' then
    -- Both of what follows counts counters, and each alone would lock them in an order of its own.
    perform from app.counters d
    where d.organisation_id in (
      select m.organisation_id
      from jsonb_to_recordset(receipts) as r (message_id uuid)
      join app.messages m on m.id = r.message_id and m.mode = 'live' and m.status = 'queued')
    order by d.organisation_id
    for no key update;
    perform core.settle_attempts(receipts);
  end if;
  perform core.apply_receipt_statuses(v_ids);
  if v_opted_out is not null then
    perform core.emit_events(array(
      select (m.id, m.organisation_id, 'opted_out')::core.message_change
      from unnest(v_opted_out) o (id)
      join app.messages m on m.id = any (v_opted_out) and m.id = o.id));
  end if;
  if v_complaints is not null then
    perform core.record_complaints(v_complaints);
  end if;
  if v_stray is not null then
    perform core.count_stray_receipts(v_stray);
  end if;
  return coalesce(v_stored, '{}');
end
$$;

comment on function core.record_receipts is
  'Record what providers report of messages: {message_id, provider_event_id, type, occurred_at, recipient, part (of an SMS), word (that an SMS was answered with), code, text, is_hard}. Each is stored once, but for those of type sent, which settle a hand-over only; the status follows from all of them, so their order does not matter. Messages that are unknown are ignored, and so are receipts that name a recipient which their email was not sent to (ops.stray_receipts). Complaints may pause their organisation. Returns the types of those that were stored, one for each.';
