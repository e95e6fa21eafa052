create function core.store_attempts(judged core.judged_attempt[], at timestamptz)
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  perform core.update_attempted(judged, store_attempts.at);
  if not exists (select from unnest(judged) a where a.verdict in ('deferred', 'failed')) then
    return;
  end if;

  insert into app.events (message_id, type, occurred_at, detail)
  select a.message_id, a.verdict::app.event_type, store_attempts.at, jsonb_strip_nulls(
    jsonb_build_object('attempt', a.attempt, 'provider', a.provider, 'code', a.code, 'text', a.text,
      'isAmbiguous', case a.outcome when 'ambiguous' then true end))
  from unnest(judged) a
  where a.verdict in ('deferred', 'failed');

  perform core.leave_jobs(array_agg(a.message_id), array_agg(distinct a.job))
  from unnest(judged) a
  where a.verdict = 'deferred';
  perform core.send_later(a.channel, a.message_id, a.organisation_id, a.class,
    coalesce(a.retry_in_ms * interval '1 millisecond', core.retry_delay(a.attempt)))
  from unnest(judged) a
  where a.verdict = 'deferred';
end
$$;

comment on function core.store_attempts is
  'Store the results of attempts in their messages, which must be locked: status, error, event of a failure, and a later attempt for those that are deferred.';
