-- Locks: webhook endpoints by id.
create function api.start_deliveries(leases jsonb)
returns setof api.delivery
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- To plan for all partitions takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_leases core.lease[] := array(select l from jsonb_populate_recordset(null::core.lease, leases) l);
  -- How many posts may be in flight to an endpoint; each that fails may take up to 10 seconds.
  v_places constant integer := 32;
  v_places_while_failing constant integer := 4;
  v_now timestamptz;
  v_picked core.picked_delivery[];
  v_first_id uuid;
  v_last_id uuid;
begin
  v_leases := core.claim_leases(v_leases);
  -- After the locks: the former lease may have left deliveries that fell due after this call began.
  v_now := core.clock();

  v_picked := array(
    select (l.endpoint_id, d.event_id, d.attempts, d.due_at)::core.picked_delivery
    from unnest(v_leases) l
    join app.webhook_endpoints e on e.id = l.endpoint_id and e.disabled_at is null
    cross join lateral (
      select d.*
      from app.webhook_deliveries d
      where d.endpoint_id = l.endpoint_id and d.due_at <= v_now and d.event_id <> all (l.in_hand)
      -- Of those due at the same time, the oldest event first.
      order by d.due_at, d.event_id
      limit greatest(0, least(l.room,
        case when e.failing_since is null then v_places else v_places_while_failing end - cardinality(l.in_hand)))
    ) d
    order by d.event_id);
  -- A join alone does not exclude partitions; these bounds exclude those that hold none of the events.
  v_first_id := v_picked[1].event_id;
  v_last_id := v_picked[cardinality(v_picked)].event_id;

  -- One statement: separate ones for leasing and reading the events took up to twice the time.
  return query
  with picked as materialized (
    select p.*, v.body
    from unnest(v_picked) p
    join app.webhook_events v on v.id = p.event_id and v.id between v_first_id and v_last_id
  ),
  -- A job that has nothing to deliver releases its lease.
  leased as (
    update app.webhook_endpoints e
    set lease_job_id = h.job
    from (
      select l.endpoint_id,
        case when l.in_hand <> '{}' or l.endpoint_id in (select p.endpoint_id from picked p) then l.job end as job
      from unnest(v_leases) l
    ) h
    where e.id = h.endpoint_id and e.lease_job_id is distinct from h.job
  )
  select p.endpoint_id, p.event_id, p.attempts + 1, v_now, e.failing_since is not null, e.url,
    array_remove(array[
      case when e.secret_sealed_by is null then e.secret end,
      case when e.old_secret_until > v_now and e.old_secret_sealed_by is null then e.old_secret end], null),
    array_remove(array[
      case when e.secret_sealed_by is not null then e.secret end,
      case when e.old_secret_until > v_now and e.old_secret_sealed_by is not null then e.old_secret end], null),
    p.body
  from picked p
  join app.webhook_endpoints e on e.id = p.endpoint_id
  order by p.due_at, p.event_id;
end
$$;

comment on function api.start_deliveries is
  'Returns the deliveries to post next. The first job that asks gets the lease of the endpoint; other jobs get nothing. A job that gets nothing and has nothing in hand has released its lease: a delivery that falls due later brings a job of its own.';
