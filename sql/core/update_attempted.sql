create function core.update_attempted(judged core.judged_attempt[], at timestamptz)
returns void
language plpgsql volatile
set enable_seqscan = off
-- A plan does not know how many rows an array holds: a loop over all results for each message would be too slow.
set enable_nestloop = off
as $$
declare
  v_ids constant uuid[] := array(
    select a.message_id from unnest(judged) a where a.verdict <> 'none' order by a.message_id);
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
    sent_at = case a.verdict when 'sent' then coalesce(m.sent_at, update_attempted.at) else m.sent_at end,
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
  from unnest(judged) a
  where m.id = any (v_ids) and m.id between v_first_id and v_last_id
    and m.id = a.message_id and a.verdict <> 'none';
end
$$;

comment on function core.update_attempted is
  'Update messages, which must be locked, with the results of attempts (core.judge_attempts).';
