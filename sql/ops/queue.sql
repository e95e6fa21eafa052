create view ops.queue as
select
  t.identifier as task,
  count(*) filter (where j.is_available and j.run_at <= now()) as waiting,
  count(*) filter (where j.locked_at is not null) as running,
  count(*) filter (where j.is_available and j.run_at > now()) as later,
  count(*) filter (where not j.is_available and j.locked_at is null) as given_up,
  min(j.run_at) filter (where j.is_available and j.run_at <= now()) as waiting_since,
  max(j.last_error) as an_error
from graphile_worker._private_tasks t
left join graphile_worker._private_jobs j on j.task_id = t.id
group by t.identifier
union all
select 'due_messages', 0, 0, count(*), 0, min(d.due_at) filter (where d.due_at < core.now()), null
from app.due_messages d
union all
select 'webhook_deliveries', count(*) filter (where d.due_at <= core.now()), 0, count(*) filter (where d.due_at > core.now()),
  0, min(d.due_at) filter (where d.due_at <= core.now()), null
from app.webhook_deliveries d;

comment on view ops.queue is
  'Jobs by task: waiting, running, later, given up. due_messages and webhook_deliveries wait outside the job table.';

comment on column ops.queue.task is 'The kind of job, or due_messages (scheduled SMS and hand-overs to try again), or webhook_deliveries.';
comment on column ops.queue.waiting is 'Jobs that could be done now.';
comment on column ops.queue.running is 'Jobs that are being done.';
comment on column ops.queue.later is 'Jobs that are to be done at a later time.';
comment on column ops.queue.given_up is 'Jobs that failed too often, which nothing does any more.';
comment on column ops.queue.waiting_since is 'Since when the oldest of those that wait could be done; null when none waits.';
comment on column ops.queue.an_error is 'What one of them failed with last; null when none has.';
