create function api.enqueue_receipt_polls(provider text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- Messages are reached by ranges of their ids; a scan would read all that were ever sent.
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  v_priority constant integer := 100;
  v_waiting integer;
  v_behind integer;
begin
  insert into app.receipt_polls (age, polled_until)
  select a.age, v_now - a.age
  from unnest('{10 minutes, 1 hour, 6 hours, 24 hours, 72 hours}'::interval[]) a (age)
  order by a.age
  on conflict do nothing;
  perform from app.receipt_polls p order by p.age for update;

  -- What waits for a slow provider waits in its window: many jobs of one queue slow down the taking
  -- of all others.
  select count(*) into v_waiting
  from graphile_worker._private_jobs j
  join graphile_worker._private_tasks t on t.id = j.task_id
  where j.is_available and j.priority = v_priority and t.identifier = 'poll_receipts';
  if v_waiting >= 100 then
    return 0;
  end if;

  with due as (
    select p.age, v_now - p.age as due_until,
      -- What has reached the next age already is left to that, so that after hours without a clock
      -- nothing is asked after five times over. After four days nobody is asked any more.
      greatest(p.polled_until, v_now - lead(p.age, 1, '96 hours') over (order by p.age)) as since
    from app.receipt_polls p
  ),
  part as materialized (
    select d.age, d.due_until, d.since, least(d.due_until, d.since + interval '15 minutes') as until
    from due d
    where d.since < d.due_until
  ),
  polled as (
    update app.receipt_polls r set polled_until = p.until from part p where r.age = p.age
  ),
  silent as (
    select m.id, (row_number() over (order by m.id) - 1) / 100 as job
    from part p
    cross join lateral (
      select m.id
      from app.messages m
      where m.id >= core.first_id_at(p.since) and m.id < core.first_id_at(p.until)
        and m.status = 'sent' and m.mode = 'live' and m.channel = 'email' and not m.is_sandbox
        -- Unknown of one whose hand-over is proved by a receipt alone.
        and coalesce(m.provider, enqueue_receipt_polls.provider) = enqueue_receipt_polls.provider
      -- Else the planner may turn it round, read every message and look for its window.
      offset 0
    ) m
  ),
  enqueued as (
    select core.add_jobs(array_agg((
      'poll_receipts', json_build_object('ids', j.ids),
      -- One after the other, however many processes there are.
      'poll_receipts', null, null, null, v_priority, null
    )::graphile_worker.job_spec))
    from (select array_agg(s.id) as ids from silent s group by s.job) j
  )
  select count(*) filter (where p.until < p.due_until) into v_behind
  from part p
  cross join enqueued;
  return v_behind;
end
$$;

comment on function api.enqueue_receipt_polls is
  'Enqueue questions to the provider after the messages that it took 10 minutes, 1, 6, 24 and 72 hours ago and of which nothing final was heard. Each call goes on by at most 15 minutes of messages at each age, and not at all while 10 000 messages wait to be asked after. Answers at how many ages there is more to look at.';
