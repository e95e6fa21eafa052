create function core.finish_messages(results jsonb)
returns integer
language plpgsql volatile
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  v_ids uuid[] := array(select r.id from jsonb_to_recordset(results) as r (id uuid));
  v_has_parts boolean := jsonb_path_exists(results, '$[*].parts[*]');
  v_departed uuid[];
  v_failed_sms uuid[];
  v_changes core.message_change[];
  v_early jsonb;
begin
  if v_has_parts then
    perform pg_advisory_xact_lock_shared(core.receipts_lock());
  end if;

  with mine as materialized (
    select m.id, m.organisation_id, m.channel, m.class, m.status, m.attempts, m.sent_at,
      r.outcome, r.provider, r.code, r.text, r.job, r.retry_in_ms, r.ambiguous_since, l.is_lost,
      case
        when r.outcome = 'sent' and m.status = 'queued' then 'sent'
        -- Receipts were faster and have set what follows from them.
        when r.outcome = 'sent' and m.sent_at is not null and m.attempt_started_at is not null then 'sent'
        when m.status <> 'queued' then 'none'
        when r.outcome = 'failed' or l.is_lost then 'failed'
        when core.first_deferral(m.id) < v_now - interval '24 hours' then 'failed'
        else 'deferred'
      end as verdict
    from app.messages m
    join jsonb_populate_recordset(null::core.attempt_result, results) as r on r.id = m.id
    -- Networks cannot be asked what they have. A login code that comes twice harms nobody.
    cross join lateral (
      select r.outcome = 'ambiguous' and m.channel = 'sms' and m.class = 'marketing' as is_lost
    ) l
    where m.id = any (v_ids)
    order by m.id
    for no key update of m
  ),
  changed as (
    update app.messages m
    set
      status = case i.verdict
        when 'sent' then case m.status when 'queued' then 'sent' else m.status end
        when 'failed' then 'failed'
        else m.status
      end,
      sent_at = case i.verdict when 'sent' then coalesce(m.sent_at, v_now) else m.sent_at end,
      provider = coalesce(i.provider, m.provider),
      attempt_started_at = case i.outcome when 'ambiguous' then coalesce(i.ambiguous_since, m.attempt_started_at) end,
      error_code = case i.verdict
        when 'failed' then case i.outcome when 'failed' then 'provider_rejected' else 'provider_unavailable' end
        else m.error_code
      end,
      error_message = case
        when i.verdict <> 'failed' then m.error_message
        when i.is_lost then 'The link to the network was lost before it answered; marketing is not sent twice.'
        else i.text
      end
    from mine i
    where m.id = any (v_ids) and m.id = i.id and i.verdict <> 'none'
  ),
  recorded as (
    insert into app.events (message_id, type, occurred_at, detail)
    select i.id, i.verdict::app.event_type, v_now, jsonb_strip_nulls(
      jsonb_build_object('attempt', i.attempts, 'provider', i.provider, 'code', i.code, 'text', i.text,
        'isAmbiguous', case i.outcome when 'ambiguous' then true end))
    from mine i
    where i.verdict in ('deferred', 'failed')
  ),
  replaced as (
    -- The worker would do that in a moment. After a crash before it, both jobs would run.
    delete from graphile_worker._private_jobs j
    using mine i
    where j.id = i.job and i.verdict = 'deferred'
  ),
  postponed as (
    select core.send_later(i.channel, i.id, i.organisation_id, i.class,
      coalesce(i.retry_in_ms * interval '1 millisecond', core.retry_delay(i.attempts)))
    from mine i
    where i.verdict = 'deferred'
  )
  select array_agg(i.id) filter (where i.status = 'queued' and i.verdict in ('sent', 'failed')),
    array_agg(i.id) filter (where i.channel = 'sms' and i.verdict = 'failed'),
    array_agg((i.id, i.organisation_id, i.verdict)::core.message_change)
      filter (where i.verdict = 'sent' and i.sent_at is null or i.verdict = 'failed')
    into v_departed, v_failed_sms, v_changes
  from mine i
  where (select count(*) from postponed) >= 0;
  -- Before receipts that came early are looked at, which may change these messages again.
  perform core.record_status_changes(v_changes);
  perform core.emit_events(v_changes);

  if v_has_parts then
    v_early := core.take_parts(results);
  end if;
  if v_early is not null then
    -- Both of what follows counts counters, and each alone would lock them in an order of its own.
    perform from app.counters d
    where d.organisation_id in (select m.organisation_id from app.messages m where m.id = any (v_ids))
    order by d.organisation_id
    for no key update;
  end if;
  perform core.count_dequeued(v_departed);
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
  return coalesce(cardinality(v_departed), 0);
end
$$;

comment on function core.finish_messages is
  'Record what the provider answered: {id, job, outcome, provider, about, code, text, retry_in_ms, ambiguous_since, settled_recipients, refused, parts}; outcome sent, failed (for good), deferred (it refused for now) or ambiguous (nobody knows). The last two are tried again for 24 hours, but for marketing SMS of which nobody knows, which fail. An SMS that failed and never left is refunded. Repeated, it changes nothing that is final; a message put off may be put off once more. What each key means: api.finish_messages; what follows from about: core.record_provider_health.';
