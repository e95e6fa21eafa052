create function core.judge_attempts(results jsonb, at timestamptz)
returns core.judged_attempt[]
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids constant uuid[] := array(select r.id from jsonb_to_recordset(results) as r (id uuid) order by r.id);
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id constant uuid := v_ids[1];
  v_last_id constant uuid := v_ids[cardinality(v_ids)];
begin
  return array(
    select row(
      m.id, m.organisation_id, m.channel, m.class, m.attempts, m.status = 'queued', m.sent_at is not null, r.outcome,
      case
        when r.outcome = 'sent' and m.status = 'queued' then 'sent'
        -- Receipts arrived before this result and have set the status already.
        when r.outcome = 'sent' and m.sent_at is not null and m.attempt_started_at is not null then 'sent'
        -- A result that is recorded already comes again if the connection was lost before the worker knew.
        when m.status <> 'queued' or m.attempt_started_at is null then 'none'
        when r.outcome = 'failed' or l.is_lost then 'failed'
        when core.first_deferral(m.id) < at - interval '24 hours' then 'failed'
        else 'deferred'
      end,
      l.is_lost, r.job, r.provider, r.code, r.text, r.retry_in_ms, r.ambiguous_since
    )::core.judged_attempt
    from app.messages m
    join jsonb_populate_recordset(null::core.attempt_result, results) as r on r.id = m.id
    -- A network cannot be asked whether it has an SMS. A login code that arrives twice harms nobody.
    cross join lateral (
      select r.outcome = 'ambiguous' and m.channel = 'sms' and m.class = 'marketing' as is_lost
    ) l
    where m.id = any (v_ids) and m.id between v_first_id and v_last_id
    order by m.id
    for no key update of m);
end
$$;

comment on function core.judge_attempts is
  'Lock messages that were attempted, in the order of their ids, and decide what follows from each result (api.finish_messages).';
