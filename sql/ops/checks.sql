create view ops.checks as
select 'worker' as name, core.has_process('worker') as ok, 'no worker is running: start one with the command "start" or "start --only worker"' as hint, 'problem' as severity
union all
select 'clock', core.has_process('clock'), 'no clock is running: start one with the command "start" or "start --only clock"', 'problem'
union all
select 'clock tasks', not exists (
  select from app.scheduled_tasks t
  cross join lateral (select r.error from app.task_runs r where r.task = t.name order by r.id desc limit 1) last
  where last.error is not null),
  'a task of the clock failed when it ran last: select * from ops.clock where error is not null',
  'problem'
union all
select 'heartbeats', not exists (select from app.processes p where p.heartbeat_at < now() - interval '30 seconds'),
  'a process holds its lock but does not beat: see ops.processes and restart it',
  'problem'
union all
select 'temporary objects', not has_database_privilege('public', current_database(), 'temporary'),
  format('every login may create temporary objects, which can shadow ours: as the owner of the database, revoke temporary on database %I from public', current_database()),
  'warning'
union all
select 'audit', core.audit_is_complete(),
  'rows of ops.audit or ops.audit_seals were changed or removed by other means than the functions of ops: compare with a backup',
  'problem'
union all
select 'temporary files', has_parameter_privilege('postgram_service', 'temp_file_limit', 'set')
  or (select s.setting <> '-1' from pg_settings s where s.name = 'temp_file_limit'),
  'a statement of the service can fill the disk with temporary files: as a superuser, grant set on parameter temp_file_limit to postgram_service',
  'warning'
union all
select 'partitions', 6 = (select count(distinct p.parent) from core.partitions() p
  where p.span_from <= core.now() + interval '20 days' and p.span_to > core.now() + interval '20 days'),
  'the partitions of the next weeks are missing: the command "migrate" makes them, the clock does so every hour',
  'problem'
union all
select 'provider', not exists (select from core.failing_providers()), 'a provider takes nothing: select * from ops.failing_providers',
  'problem'
union all
select 'stuck messages', not exists (select from core.stuck_messages()),
  'messages wait for more than a minute: select *, ops.why(id) from ops.stuck_messages limit 10',
  case when core.has_overdue_messages() then 'problem' else 'warning' end
union all
select 'given-up jobs', not exists (select from graphile_worker._private_jobs j where not j.is_available and j.locked_at is null),
  'jobs gave up: select * from ops.queue',
  'problem'
union all
-- The newest balance of each, as the whole ledger is too much to be read every time.
select 'ledger_check', not exists (select from app.allowances a
  where a.sms_credits <> coalesce((select l.balance from app.credit_ledger l
    where l.organisation_id = a.organisation_id
    order by l.id desc
    limit 1), 0)),
  'the credits of an organisation are not what its ledger says: select * from ops.ledger_check where not is_balanced',
  'problem'
union all
select 'stray receipts', not exists (select from app.stray_receipts s
  where s.receipts >= 100 and s.last_at > core.now() - interval '24 hours'),
  'a provider reports recipients that messages were not sent to: select * from ops.stray_receipts; does somebody else know MAILGUN_WEBHOOK_SIGNING_KEY?',
  'warning'
union all
-- Retries see to a short failure, and one that an operator disabled is so on purpose.
select 'webhook endpoints', not exists (select from app.webhook_endpoints p
  where p.failing_since < core.now() - interval '1 hour' and p.disabled_at is null
    or p.disabled_at is not null and p.disabled_reason is null),
  'endpoints fail, or were disabled because they did: select * from ops.failing_endpoints',
  'warning'
union all
select 'owner mail', coalesce((select n.failed_at is null from app.notices n
  where n.sent_at is not null or n.failed_at is not null
  order by n.id desc
  limit 1), true),
  'the last mail to an owner was refused: select * from ops.notices; is SYSTEM_FROM a sender that the provider takes?',
  'warning'
union all
select 'address probes', not exists (select from app.named_bounces b where b.exceeded_at > core.now() - interval '1 day'),
  'an organisation wrote to more than 500 addresses in an hour that had bounced for others; it may be testing which addresses exist: select * from ops.organisations where probed_at > now() - interval ''1 day''',
  'warning'
union all
select 'versions', 1 >= (select count(distinct p.version) from app.processes p
  where core.lock_holder(p.pool_id) is not null),
  'processes of several versions run; restart the older ones: select distinct version, host, pid from ops.processes',
  'warning'
union all
-- A heartbeat arrives within a second, so this is the clocks.
select 'clocks', not exists (select from app.processes p
  where core.lock_holder(p.pool_id) is not null
    and p.clock_offset not between interval '-5 seconds' and interval '5 seconds'),
  'the clock of a machine differs by more than 5 s from the database''s: receivers refuse webhooks signed more than 5 minutes off, mail through a relay has a wrong Date, and logs do not fit together; set the time by NTP on both: select distinct host, clock_offset from ops.processes',
  'warning'
union all
select 'synchronous commits', not exists (select from app.processes p
  where core.lock_holder(p.pool_id) is not null and (p.synchronous_commit = 'off'
    or p.synchronous_commit = 'local' and current_setting('synchronous_standby_names') <> '')),
  case current_setting('synchronous_standby_names')
    when '' then 'commits of the service do not wait for the disk: a crash of the server loses messages that were answered 200; '
    else 'commits of the service do not wait for the standbys in synchronous_standby_names: a failover loses messages that were answered 200; '
  end || 'set synchronous_commit to on for the database and the login of DATABASE_URL: select host, pid, synchronous_commit from ops.processes',
  'problem'
union all
select 'synchronous standbys', core.has_synchronous_standbys(),
  'fewer standbys are connected than synchronous_standby_names asks for, so that commits wait: start the standby, or change synchronous_standby_names: select * from pg_stat_replication',
  'problem';

comment on view ops.checks is
  'What is wrong with the service now, how severe it is, and what to do. The command "doctor" shows each check.';

comment on column ops.checks.name is 'What is looked at.';
comment on column ops.checks.ok is 'Whether nothing is wrong with it.';
comment on column ops.checks.hint is 'What is wrong if it is not well, and what to do.';
comment on column ops.checks.severity is
  'How severe it is when it is not well: problem (something does not work, or data is at risk) or warning (look at it when you have the time).';
