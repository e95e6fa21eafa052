-- Locks, in this order: webhook endpoints by id, then their deliveries.
create function core.finish_deliveries(results jsonb)
returns integer
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_now timestamptz;
  v_delivered integer;
begin
  perform core.lock_endpoints(array(
    select r.endpoint_id from jsonb_to_recordset(results) as r (endpoint_id uuid)));
  v_now := core.clock();

  -- One statement: a separate one for each change took up to twice the time.
  with result as materialized (
    select r.*
    from jsonb_populate_recordset(null::core.delivery_result, results) with ordinality
      as r (endpoint_id, event_id, attempt, started_at, duration_ms, status, error, response, place)
  ),
  -- A result that was recorded before, but whose response was lost, counts once.
  inserted as (
    insert into app.webhook_attempts (endpoint_id, event_id, started_at, attempt, duration_ms, status, error, response)
    select r.endpoint_id, r.event_id, r.started_at, r.attempt, r.duration_ms, r.status, left(r.error, 500), left(r.response, 1000)
    from result r
    on conflict do nothing
    returning endpoint_id, event_id, started_at
  ),
  counted as materialized (
    select r.*, core.webhook_retry_delay(r.attempt) as delay, e.id is not null as is_enabled
    from (
      -- "in" builds a hash table. A plan does not know how many rows these are, and a join became a loop over all
      -- results for each, which took twice as long for 128 of them.
      select r.*, (r.endpoint_id, r.event_id, r.started_at) in (
        select i.endpoint_id, i.event_id, i.started_at from inserted i) as is_new
      from result r
    ) r
    -- A disabled endpoint has no deliveries that count, and the transaction that enables it may hold its rows for long.
    left join app.webhook_endpoints e on e.id = r.endpoint_id and e.disabled_at is null
    where r.is_new
  ),
  -- Delete deliveries that succeeded, and those that ran out of attempts.
  deleted as (
    delete from app.webhook_deliveries d
    using counted c
    where d.endpoint_id = c.endpoint_id and d.event_id = c.event_id and c.is_enabled
      and (c.error is null or c.delay is null and d.attempts + 1 = c.attempt)
  ),
  deferred as (
    update app.webhook_deliveries d
    set attempts = c.attempt, due_at = v_now + c.delay
    from counted c
    where d.endpoint_id = c.endpoint_id and d.event_id = c.event_id and c.is_enabled
      and c.error is not null and c.delay is not null
      -- Else it was replayed meanwhile, and its schedule starts again.
      and d.attempts + 1 = c.attempt
  ),
  summed as (
    insert into app.webhook_hours as w (endpoint_id, hour, attempts, succeeded)
    select c.endpoint_id, date_trunc('hour', v_now, 'UTC'), count(*), count(*) filter (where c.error is null)
    from counted c
    where c.is_enabled
    group by c.endpoint_id
    on conflict (endpoint_id, hour) do update
      set attempts = w.attempts + excluded.attempts, succeeded = w.succeeded + excluded.succeeded
  ),
  health as (
    select c.endpoint_id, bool_or(c.error is null) as has_success,
      (array_agg(c.error order by c.place desc))[1] as last_error
    from counted c
    where c.is_enabled
    group by c.endpoint_id
  ),
  -- Only rows that change; the time of a further failure is kept to the minute.
  updated as (
    update app.webhook_endpoints e
    set
      failing_since = case
        when h.last_error is null then null
        when h.has_success then v_now
        else coalesce(e.failing_since, v_now)
      end,
      failed_at = case when h.last_error is null then e.failed_at else v_now end,
      last_error = h.last_error,
      warned_at = case when not h.has_success then e.warned_at end
    from health h
    where e.id = h.endpoint_id
      and (
        h.last_error is distinct from e.last_error
        or h.has_success and e.failing_since is not null
        or h.last_error is not null and e.failed_at < v_now - interval '1 minute'
      )
  )
  select count(*) filter (where c.error is null) into v_delivered from counted c;
  return v_delivered;
end
$$;

comment on function core.finish_deliveries is
  'Record the results of attempts, in the order in which they ended. A failed delivery is attempted again after 1 min, 5 min, 30 min, 2 h and 24 h; then it stops. An endpoint is failing from its first failure until its next success. Returns how many succeeded. A repeated result changes nothing.';
