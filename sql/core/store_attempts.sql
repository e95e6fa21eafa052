create function core.store_attempts(attempts core.judged_attempt[], at timestamptz)
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids constant uuid[] := array(
    select a.message_id from unnest(attempts) a where a.verdict <> 'none' order by a.message_id);
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id constant uuid := v_ids[1];
  v_last_id constant uuid := v_ids[cardinality(v_ids)];
begin
  update app.messages m
  set
    status = case a.verdict
      when 'sent' then case m.status when 'queued' then 'sent' else m.status end
      when 'failed' then 'failed'
      else m.status
    end,
    sent_at = case a.verdict when 'sent' then coalesce(m.sent_at, store_attempts.at) else m.sent_at end,
    provider = coalesce(a.provider, m.provider),
    attempt_started_at = case a.outcome when 'ambiguous' then coalesce(a.ambiguous_since, m.attempt_started_at) end,
    error_code = case a.verdict
      when 'failed' then case a.outcome when 'failed' then 'provider_rejected' else 'provider_unavailable' end
      else m.error_code
    end,
    error_message = case
      when a.verdict <> 'failed' then m.error_message
      when a.is_lost then 'The link to the network was lost before it responded; marketing is not sent twice.'
      else a.text
    end
  from unnest(attempts) a
  where m.id = any (v_ids) and m.id between v_first_id and v_last_id
    and m.id = a.message_id and a.verdict <> 'none';

  if not exists (select from unnest(attempts) a where a.verdict in ('deferred', 'failed')) then
    return;
  end if;

  insert into app.events (message_id, type, occurred_at, detail)
  select a.message_id, a.verdict::app.event_type, store_attempts.at, jsonb_strip_nulls(
    jsonb_build_object('attempt', a.attempt, 'provider', a.provider, 'code', a.code, 'text', a.text,
      'isAmbiguous', case a.outcome when 'ambiguous' then true end))
  from unnest(attempts) a
  where a.verdict in ('deferred', 'failed');

  -- The worker deletes this job in a moment. If it crashes first, the old and the new job would both run.
  delete from graphile_worker._private_jobs j
  using unnest(attempts) a
  where j.id = a.job and a.verdict = 'deferred';

  perform core.send_later(a.channel, a.message_id, a.organisation_id, a.class,
    coalesce(a.retry_in_ms * interval '1 millisecond', core.retry_delay(a.attempt)))
  from unnest(attempts) a
  where a.verdict = 'deferred';
end
$$;

comment on function core.store_attempts is
  'Store the results of attempts in their messages, which must be locked: status, error, event of a failure, and a later attempt for those that are deferred.';
