create view ops.queue as
select
  t.identifier as task,
  coalesce(sum(core.job_size(j.payload)) filter (where j.is_available and j.run_at <= now()), 0) as waiting,
  coalesce(sum(core.job_size(j.payload)) filter (where j.locked_at is not null), 0) as running,
  coalesce(sum(core.job_size(j.payload)) filter (where j.is_available and j.run_at > now()), 0) as scheduled,
  coalesce(sum(core.job_size(j.payload)) filter (where not j.is_available and j.locked_at is null), 0) as failed,
  min(j.run_at) filter (where j.is_available and j.run_at <= now()) as waiting_since,
  max(j.last_error) as last_error
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
  'Number of jobs of each kind: waiting, running, scheduled and failed. A job of several messages counts as that many. due_messages and webhook_deliveries are counted from their own tables.';

comment on column ops.queue.task is
  'The task, or due_messages (scheduled SMS, and messages deferred to a later attempt), or webhook_deliveries.';
comment on column ops.queue.waiting is 'Jobs that are due.';
comment on column ops.queue.running is 'Jobs that a worker is running.';
comment on column ops.queue.scheduled is 'Jobs that are due later.';
comment on column ops.queue.failed is 'Jobs that failed permanently.';
comment on column ops.queue.waiting_since is 'Since when the oldest waiting job is due; null if none waits.';
comment on column ops.queue.last_error is 'The last error of one of the jobs; null if none failed.';
