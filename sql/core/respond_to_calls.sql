create function core.respond_to_calls(
  calls core.checked_call[], results core.item_result[], catalogue jsonb, at timestamptz
)
returns setof core.call_response
language plpgsql volatile
-- A plan does not know how many rows an array holds, and a loop over all calls for each call would be too slow.
set enable_nestloop = off
as $$
begin
  return query
  with results_of_call as (
    select r.n, array_agg(r order by r.index) as results, bool_or(r.refusal is null) as has_accepted
    from unnest(results) r
    group by r.n
  ),
  response as materialized (
    select c.n, c.organisation_id, c.mode, c.key, c.fingerprint, c.verdict, c.stored_status,
      coalesce(nullif(c.verdict, 'replay'), case when not c.batch then r.results[1].refusal end) as code,
      case when not c.batch then r.results[1].message end as message,
      case when not c.batch then r.results[1].retry_after end as retry_after,
      case when not c.batch then r.results[1].fields end as fields,
      r.has_accepted,
      case
        when c.verdict is not null then c.stored_body
        when c.batch then (
          select format('{"results":[%s]}', string_agg(
            case when e.error is null then format('{"index":%s,"ok":true,"data":%s}', i.index, i.data)
              else format('{"index":%s,"ok":false,"error":%s}', i.index, e.error) end,
            ',' order by i.index))
          from unnest(r.results) i
          cross join lateral (select coalesce(i.error, (catalogue -> i.refusal)
            || jsonb_strip_nulls(jsonb_build_object('message', i.message, 'fields', i.fields))) as error) e)
        else left(r.results[1].data, -1) || format(',"mode":"%s"}', c.mode)
      end as body
    from unnest(calls) c
    left join results_of_call r on r.n = c.n
  ),
  -- In the same statement as the result: another one would copy all bodies.
  stored as (
    insert into app.idempotency_keys (organisation_id, mode, key, created_at, fingerprint, status, body)
    select r.organisation_id, r.mode, r.key, at, r.fingerprint, 200, r.body
    from response r
    -- A caller without a key of its own cannot repeat a batch of which nothing was accepted.
    where r.verdict is null and r.code is null and (r.has_accepted or r.key not like 'request:%')
  )
  select r.n, coalesce(r.stored_status, 200::smallint), r.code, r.message, r.retry_after, r.fields,
    case when r.code is null then r.body end, r.verdict is not distinct from 'replay'
  from response r;
end
$$;

comment on function core.respond_to_calls is
  'Returns the responses to calls whose items were judged, in either channel. Stores those of accepted calls for the replays of their idempotency keys; a replayed call gets the stored one.';
