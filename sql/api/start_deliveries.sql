create function api.start_deliveries(turns jsonb)
returns setof api.delivery
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_turns core.turn[] := array(select t from jsonb_populate_recordset(null::core.turn, turns) t);
  -- How many posts may be under way at an endpoint; one that fails may keep each waiting for 10 seconds.
  v_places constant integer := 32;
  v_places_while_failing constant integer := 4;
  v_now timestamptz;
begin
  v_turns := core.claim_leases(v_turns);
  -- Only now: whoever had the turn in between may have left what fell due after this began.
  v_now := core.clock();

  return query
  with picked as materialized (
    select t.endpoint_id, d.event_id, d.attempts, d.due_at, v.body
    from unnest(v_turns) t
    join app.webhook_endpoints e on e.id = t.endpoint_id and e.disabled_at is null
    cross join lateral (
      select d.*
      from app.webhook_deliveries d
      where d.endpoint_id = t.endpoint_id and d.due_at <= v_now and d.event_id <> all (t.in_hand)
      -- Of what fell due together, what happened first.
      order by d.due_at, d.event_id
      limit greatest(0, least(t.room,
        case when e.failing_since is null then v_places else v_places_while_failing end - cardinality(t.in_hand)))
    ) d
    join app.webhook_events v on v.id = d.event_id
  ),
  held as (
    update app.webhook_endpoints e
    set lease_job_id = h.job
    from (
      select t.endpoint_id,
        case when t.in_hand <> '{}' or t.endpoint_id in (select p.endpoint_id from picked p) then t.job end as job
      from unnest(v_turns) t
    ) h
    where e.id = h.endpoint_id and e.lease_job_id is distinct from h.job
  )
  select p.endpoint_id, p.event_id, p.attempts + 1, v_now, e.failing_since is not null, e.url,
    case when e.old_secret_until > v_now then array[e.secret, e.old_secret] else array[e.secret] end, p.body
  from picked p
  join app.webhook_endpoints e on e.id = p.endpoint_id
  order by p.due_at, p.event_id;
end
$$;

comment on function api.start_deliveries is
  'What is to be posted next: turns are {endpoint_id, job, worker (the pool that has the job), in_hand (events that this job is posting), room}. The first job that asks has the endpoint''s turn; another gets nothing. A job that gets nothing and has nothing in hand has given its turn up: whatever falls due later brings a job of its own.';
