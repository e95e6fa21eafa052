-- Lines of hints have at most 36 characters, so that the table fits on 80 columns.
create view ops.checks as
select c.name, c.ok, case when not c.ok then c.severity end as severity,
  case when not c.ok then core.wrapped(c.hint, 36) end as hint
from (
  select 'worker', core.has_process('worker'), 'problem',
    'no worker is running; start one with the command "start" or "start --only worker"'
  union all
  select 'clock', core.has_process('clock'), 'problem',
    'no clock is running; start one with the command "start" or "start --only clock"'
  union all
  select 'scheduled tasks', not exists (
    select from app.scheduled_tasks t
    cross join lateral (select r.error from app.task_runs r where r.task = t.name order by r.id desc limit 1) last
    where last.error is not null),
    'problem', 'the last run of a scheduled task failed: select * from ops.clock where error is not null'
  union all
  select 'heartbeats', not exists (select from app.processes p where p.heartbeat_at < now() - interval '30 seconds'),
    'problem', 'a process has sent no heartbeat for 30 s but still holds its lock; restart it: select * from ops.processes'
  union all
  select 'temporary objects', not has_database_privilege('public', current_database(), 'temporary'), 'warning',
    format('every login may create temporary objects, which can shadow objects of Postgram; run as the owner of the database: revoke temporary on database %I from public',
      current_database())
  union all
  select 'audit', core.audit_is_complete(), 'problem',
    'rows of ops.audit or ops.audit_seals were changed or removed without the functions of ops; compare them with a backup'
  union all
  select 'temporary files', has_parameter_privilege('postgram_service', 'temp_file_limit', 'set')
    or (select s.setting <> '-1' from pg_settings s where s.name = 'temp_file_limit'),
    'warning', 'a statement of the service can fill the disk with temporary files; run as a superuser: grant set on parameter temp_file_limit to postgram_service'
  union all
  select 'partitions', 7 = (select count(distinct p.parent) from core.partitions() p
    where p.span_from <= core.now() + interval '20 days' and p.span_to > core.now() + interval '20 days'),
    'problem', 'partitions for the next 20 days are missing; the command "migrate" creates them, and so does the clock every hour'
  union all
  select 'provider', not exists (select from core.failing_providers()), 'problem',
    'a provider accepts no messages: select * from ops.failing_providers'
  union all
  select 'stuck messages', not exists (select from core.stuck_messages()),
    case when core.has_overdue_messages() then 'problem' else 'warning' end,
    'messages have waited for more than a minute: select *, ops.why(id) from ops.stuck_messages limit 10'
  union all
  select 'failed jobs', not exists (select from graphile_worker._private_jobs j where not j.is_available and j.locked_at is null),
    'problem', 'jobs failed permanently: select * from ops.queue where failed > 0'
  union all
  -- Compares the newest balance of each organisation only: the whole ledger takes too long to read.
  select 'credit ledger', not exists (select from app.allowances a
    where a.sms_credits <> coalesce((select l.balance from app.credit_ledger l
      where l.organisation_id = a.organisation_id
      order by l.id desc
      limit 1), 0)),
    'problem', 'the credits of an organisation do not agree with the ledger: select * from ops.ledger_check where not is_balanced'
  union all
  select 'stray receipts', not exists (select from app.stray_receipts s
    where s.receipts >= 100 and s.last_at > core.now() - interval '24 hours'),
    'warning', 'a provider reports recipients that messages were not sent to: select * from ops.stray_receipts; check whether MAILGUN_WEBHOOK_SIGNING_KEY has leaked'
  union all
  -- Retries handle a short failure. An endpoint that an operator disabled is disabled on purpose.
  select 'webhook endpoints', not exists (select from app.webhook_endpoints p
    where p.failing_since < core.now() - interval '1 hour' and p.disabled_at is null
      or p.disabled_at is not null and p.disabled_reason is null),
    'warning', 'webhook endpoints fail or were disabled because they failed: select * from ops.failing_endpoints'
  union all
  select 'owner mail', coalesce((select n.failed_at is null from app.notices n
    where n.sent_at is not null or n.failed_at is not null
    order by n.id desc
    limit 1), true),
    'warning', 'the last notice to an owner was refused: select * from ops.notices limit 10; check that the provider accepts the sender SYSTEM_FROM'
  union all
  select 'address probes', not exists (select from app.named_bounces b where b.exceeded_at > core.now() - interval '1 day'),
    'warning', 'an organisation wrote within an hour to more than 500 addresses that had bounced for others; it may be testing which addresses exist: select * from ops.organisations where probed_at > now() - interval ''1 day'''
  union all
  select 'versions', 1 >= (select count(distinct p.version) from app.processes p
    where core.is_alive(p)),
    'warning', 'processes of several versions are running; restart the older ones: select distinct version, host, pid from ops.processes'
  union all
  -- A heartbeat arrives within a second, so a larger offset comes from the clocks.
  select 'clocks', not exists (select from app.processes p
    where core.is_alive(p)
      and p.clock_offset not between interval '-5 seconds' and interval '5 seconds'),
    'warning', 'the clock of a machine differs by more than 5 s from the database''s, and receivers refuse webhooks signed more than 5 minutes off; set both clocks by NTP: select distinct host, clock_offset from ops.processes'
  union all
  select 'synchronous commits', not exists (select from app.processes p
    where core.is_alive(p) and (p.synchronous_commit = 'off'
      or p.synchronous_commit = 'local' and current_setting('synchronous_standby_names') <> '')),
    'problem', case current_setting('synchronous_standby_names')
      when '' then 'commits of the service do not wait for the disk: a crash of the server loses messages that were accepted; '
      else 'commits of the service do not wait for the standbys in synchronous_standby_names: a failover loses messages that were accepted; '
    end || 'set synchronous_commit to on for the database and the login of DATABASE_URL: select host, pid, synchronous_commit from ops.processes'
  union all
  select 'division', not exists (select from app.division), 'problem',
    'the cell is being divided, so no process of the service starts; finish with ops.divide or give up with ops.end_division: select * from ops.division'
  union all
  select 'cells', not core.are_lists_behind(), 'problem',
    'the lists of another cell are more than 5 minutes behind, so marketing waits; start its server and its clock, or the command "leave" there or here: select * from ops.cells'
  union all
  select 'cell subscriptions', not exists (select from core.other_cells() o
    where not o.is_replicating
      or o.errors > 0 and greatest(o.heartbeat_at, o.joined_at) < now() - interval '30 seconds'),
    'problem', 'the lists of another cell are not applied here; its server is away, or the log of this server names the error: select * from ops.cells; select * from pg_stat_subscription_stats'
  union all
  select 'synchronous standbys', core.has_synchronous_standbys(), 'problem',
    'fewer standbys are connected than synchronous_standby_names requires, so commits wait; start the standby or change synchronous_standby_names: select * from pg_stat_replication'
  union all
  select 'standby lag', not core.has_lagging_standby(), 'warning',
    'a synchronous standby is more than 64 MB behind, so commits or a failover take longer; look for a slow disk or network there, or a long query that stops its replay: select * from pg_stat_replication'
) c (name, ok, severity, hint);

comment on view ops.checks is
  'Health checks of the service, with a hint for each one that fails. The command "doctor" runs these checks and more.';

comment on column ops.checks.name is 'The name of the check.';
comment on column ops.checks.ok is 'Whether the check passes.';
comment on column ops.checks.severity is
  'problem (something does not work, or data is at risk) or warning (no urgent action needed); null if the check passes.';
comment on column ops.checks.hint is 'What is wrong and how to fix it; null if the check passes.';
