create function core.respond_to_calls(calls core.checked_call[], outcomes core.outcome[], catalogue jsonb, at timestamptz)
returns setof core.answer
language plpgsql volatile
-- What an array holds is not known to a plan, and a loop over calls for each call would be too slow.
set enable_nestloop = off
as $$
begin
  return query
  with outcome_of_call as (
    select o.n, array_agg(o order by o.index) as all_of_it, bool_or(o.refusal is null) as has_accepted
    from unnest(outcomes) o
    group by o.n
  ),
  answer as materialized (
    select c.n, c.organisation_id, c.mode, c.key, c.fingerprint, c.answer, c.stored_status,
      coalesce(nullif(c.answer, 'replay'), case when not c.batch then o.all_of_it[1].refusal end) as code,
      case when not c.batch then o.all_of_it[1].words end as words,
      case when not c.batch then o.all_of_it[1].retry_after end as retry_after,
      case when not c.batch then o.all_of_it[1].fields end as fields,
      o.has_accepted,
      case
        when c.answer is not null then c.stored_body
        when c.batch then (
          select '{"results":['
            || string_agg(
              core.batch_result(i.index, i.data, coalesce(i.error, core.error(catalogue, i.refusal, i.fields, i.words))),
              ',' order by i.index)
            || ']}'
          from unnest(o.all_of_it) i)
        else left(o.all_of_it[1].data, -1) || format(',"mode":"%s"}', c.mode)
      end as body
    from unnest(calls) c
    left join outcome_of_call o on o.n = c.n
  ),
  remembered as (
    insert into app.idempotency_keys (organisation_id, mode, key, created_at, fingerprint, status, body)
    select a.organisation_id, a.mode, a.key, at, a.fingerprint, 200, a.body
    from answer a
    -- Without a key of the caller's, nobody can ask again what a batch got of which nothing was accepted.
    where a.answer is null and a.code is null and (a.has_accepted or a.key not like 'request:%')
  )
  select a.n, coalesce(a.stored_status, 200::smallint), a.code, a.words, a.retry_after, a.fields,
    case when a.code is null then a.body end, a.answer is not distinct from 'replay'
  from answer a;
end
$$;

comment on function core.respond_to_calls is
  'What to answer to calls whose items were judged, in either channel: accepted ones are kept for the replays of their idempotency keys, replayed ones get what was kept.';
