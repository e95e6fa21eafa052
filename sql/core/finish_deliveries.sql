-- Locks, in this order: webhook endpoints by id, then their deliveries.
create function core.finish_deliveries(
  results jsonb, leases jsonb default '[]', out delivered integer, out released uuid[]
)
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_results core.delivery_result[] := array(select r from jsonb_populate_recordset(null::core.delivery_result, results) r);
  v_of_endpoints core.endpoint_results[];
  v_now timestamptz;
  v_hour timestamptz;
  v_is_new_hour boolean;
begin
  perform core.lock_endpoints(array(select r.endpoint_id from unnest(v_results) r));
  v_now := core.clock();
  v_hour := date_trunc('hour', v_now, 'UTC');

  -- One statement: a separate one for each change took up to twice the time.
  with result as materialized (
    select r.*
    from unnest(v_results) with ordinality
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
    select r.*, core.webhook_retry_delay(r.attempt) as delay, e.id is not null as is_enabled, e.counted_hour
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
  of_endpoint as (
    select c.endpoint_id, count(*) as attempts, count(*) filter (where c.error is null) as succeeded,
      (array_agg(c.error order by c.place desc))[1] as last_error, c.counted_hour
    from counted c
    where c.is_enabled
    group by c.endpoint_id, c.counted_hour
  )
  select coalesce((select count(*) from counted c where c.error is null), 0),
    array_agg((o.endpoint_id, o.attempts, o.succeeded, o.last_error)::core.endpoint_results), bool_or(o.counted_hour <> v_hour)
    into delivered, v_of_endpoints, v_is_new_hour
  from of_endpoint o;

  if v_is_new_hour then
    insert into app.webhook_hours as w (endpoint_id, hour, attempts, succeeded)
    select e.id, e.counted_hour, e.hour_attempts, e.hour_succeeded
    from unnest(v_of_endpoints) o
    join app.webhook_endpoints e on e.id = o.endpoint_id
    where e.counted_hour <> v_hour
    on conflict (endpoint_id, hour) do update
      set attempts = w.attempts + excluded.attempts, succeeded = w.succeeded + excluded.succeeded;
  end if;

  -- Counts, health and lease in one change of each row. What falls due after this look brings a job that finds the
  -- lease released.
  with changed as (
    update app.webhook_endpoints e
    set
      lease_job_id = case when e.lease_job_id = c.job then null else e.lease_job_id end,
      counted_hour = v_hour,
      hour_attempts = c.attempts + case when e.counted_hour = v_hour then e.hour_attempts else 0 end,
      hour_succeeded = c.succeeded + case when e.counted_hour = v_hour then e.hour_succeeded else 0 end,
      failing_since = case
        when c.attempts = 0 then e.failing_since
        when c.last_error is null then null
        when c.succeeded > 0 then v_now
        else coalesce(e.failing_since, v_now)
      end,
      failed_at = case when c.last_error is null then e.failed_at else v_now end,
      last_error = case when c.attempts = 0 then e.last_error else c.last_error end,
      warned_at = case when c.succeeded = 0 then e.warned_at end
    from (
      select endpoint_id, coalesce(o.attempts, 0) as attempts, coalesce(o.succeeded, 0) as succeeded, o.last_error, l.job
      from unnest(v_of_endpoints) o
      full join (
        select h.endpoint_id, h.job
        from jsonb_populate_recordset(null::core.held_lease, leases) h
        where not exists (
          select from app.webhook_deliveries d where d.endpoint_id = h.endpoint_id and d.due_at <= v_now)
      ) l using (endpoint_id)
    ) c
    where e.id = c.endpoint_id and e.disabled_at is null
    returning e.id, e.lease_job_id is null and c.job is not null as is_released
  )
  select array_agg(c.id) filter (where c.is_released) into released from changed c;
end
$$;

comment on function core.finish_deliveries is
  'Record the results of attempts, in the order in which they ended, and release those of these leases (core.held_lease) at whose endpoints nothing is due any more. A failed delivery is attempted again after 1 min, 5 min, 30 min, 2 h and 24 h; then it stops. An endpoint is failing from its first failure until its next success. Returns how many attempts succeeded, and the endpoints whose leases were released. A repeated result changes nothing.';
