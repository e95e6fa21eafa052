create function api.enqueue_receipt_polls(provider text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- Messages are reached by ranges of their ids; a scan would read all that were ever sent.
set enable_seqscan = off
as $$
declare
  v_now timestamptz := core.now();
  c_priority constant integer := 100;
  v_waiting integer;
  v_window record;
  v_ids uuid[] := '{}';
  v_behind integer := 0;
begin
  -- The ages, and up to when each has been polled.
  insert into app.receipt_polls (age, polled_until)
  select a.age, v_now - a.age
  from unnest('{10 minutes, 1 hour, 6 hours, 24 hours, 72 hours}'::interval[]) a (age)
  order by a.age
  on conflict do nothing;
  perform from app.receipt_polls p order by p.age for update;

  -- Messages for a slow provider wait in their window, not in jobs: many jobs of one queue slow down the taking
  -- of all others.
  select count(*) into v_waiting
  from graphile_worker._private_jobs j
  join graphile_worker._private_tasks t on t.id = j.task_id
  where j.is_available and j.priority = c_priority and t.identifier = 'poll_receipts';
  if v_waiting >= 100 then
    return 0;
  end if;

  -- Move the window of each age forward, and collect the messages in it that are still only sent.
  for v_window in
    select w.age, w.due_until, w.since, least(w.due_until, w.since + interval '15 minutes') as until
    from (
      select p.age, v_now - p.age as due_until,
        -- A message that has reached the next age is left to that, so that after hours without a clock it is
        -- polled once and not five times. After four days no message is polled.
        greatest(p.polled_until, v_now - lead(p.age, 1, '96 hours') over (order by p.age)) as since
      from app.receipt_polls p
    ) w
    where w.since < w.due_until
    order by w.age desc
  loop
    update app.receipt_polls p set polled_until = v_window.until where p.age = v_window.age;
    v_ids := v_ids || array(
      select m.id
      from app.messages m
      where m.id >= core.first_id_at(v_window.since) and m.id < core.first_id_at(v_window.until)
        and m.status = 'sent' and m.mode = 'live' and m.channel = 'email' and not m.is_sandbox
        -- The provider is not known when only a receipt proves the attempt.
        and coalesce(m.provider, enqueue_receipt_polls.provider) = enqueue_receipt_polls.provider
      order by m.id);
    if v_window.until < v_window.due_until then
      v_behind := v_behind + 1;
    end if;
  end loop;

  -- One job for each 100 messages. They share a queue, so they run one after the other in all processes.
  perform core.add_jobs((
    select array_agg((
      'poll_receipts', json_build_object('ids', j.ids), 'poll_receipts', null, null, null, c_priority, null
    )::graphile_worker.job_spec order by j.n)
    from (
      select (i.place - 1) / 100 as n, array_agg(i.id order by i.place) as ids
      from unnest(v_ids) with ordinality as i (id, place)
      group by 1
    ) j));
  return v_behind;
end
$$;

comment on function api.enqueue_receipt_polls is
  'Enqueue jobs that ask the provider about messages which it took 10 minutes, 1, 6, 24 and 72 hours ago and which have no final status. Each call moves on by at most 15 minutes of messages at each age, and does nothing while 10 000 messages wait to be polled. Returns at how many ages more messages are left.';
