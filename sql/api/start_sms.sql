-- Locks, in this order: messages by id, and to end some counters and allowances by organisation.
create function api.start_sms(ids uuid[], jobs bigint[] default null)
returns setof api.sms_to_send
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- To plan for all partitions takes longer than to run: one generic plan, in which the bounds exclude partitions.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := core.now();
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
  v_verdicts core.sms_verdict[];
  v_started uuid[];
begin
  -- Lock first: the statements below read other tables too, and must see all that another worker did.
  perform from app.messages m
  where m.id = any (ids) and m.id between v_first_id and v_last_id
  order by m.id
  for no key update;

  v_verdicts := core.judge_sms_to_start(ids, v_first_id, v_last_id, v_now);
  v_started := array(select v.message_id from unnest(v_verdicts) v where v.verdict = 'start');
  if cardinality(v_started) < cardinality(v_verdicts) then
    perform core.put_sms_aside(v_verdicts);
    perform core.leave_jobs(array_agg(g.id), array_agg(distinct g.job))
    from unnest(ids, start_sms.jobs) g (id, job)
    join unnest(v_verdicts) v on v.message_id = g.id
    where v.verdict in ('hold', 'wait', 'defer');
  end if;

  -- A scheduled SMS shows in its timeline when it was released.
  insert into app.events (message_id, type, occurred_at)
  select v.message_id, 'queued', v_now
  from unnest(v_verdicts) v
  where v.verdict = 'start' and v.status = 'scheduled';

  return query
  with started as (
    update app.messages m
    set status = 'queued', attempts = m.attempts + 1, attempt_started_at = v_now
    where m.id = any (v_started) and m.id between v_first_id and v_last_id
    returning m.id, m.organisation_id, m.attempts, m.is_sandbox, m.class, m.from_address, m.to_address, m.segments
  )
  select m.id, m.organisation_id, m.attempts::integer, v_now, m.is_sandbox, m.class, m.from_address, m.to_address,
    b.text, m.segments::integer,
    array(select p.part::text from app.sms_parts p where p.message_id = m.id order by p.part)
  from started m
  -- The limit makes the plan look up each body by its id.
  cross join lateral (
    select b.* from app.bodies b
    where b.message_id = m.id and b.message_id between v_first_id and v_last_id
    limit 1
  ) b;
end
$$;

comment on function api.start_sms is
  'Start an attempt of those of these SMS that still wait; the caller commits before it calls the provider. Holds SMS of a paused organisation, defers marketing while the lists of another cell are behind. Rejects SMS of a suspended organisation, scheduled SMS that are a day late, and marketing that the rules forbid now. Of SMS that may have left already, marketing without a known outcome fails and transactional ones start again. jobs: the jobs of the ids, which held SMS leave.';
