/**
 * The rights of the service on the tables of graphile-worker and pg-boss, which the libraries use directly, as the
 * service. Functions of core add jobs as the owner. No right may allow the service to run code as the owner, so the
 * service has no TRIGGER right and cannot write where the owner executes what it reads:
 *
 * - a trigger runs with the rights of everyone who writes to its table;
 * - migrate executes the commands in pgboss.bam;
 * - pg-boss puts the table names of pgboss.queue into statements, also into those of migrate.
 */
const tables: Record<string, string> = {
  'graphile_worker.migrations': 'select',
  'graphile_worker._private_tasks': 'select, insert',
  // graphile-worker reads it at start, although we use no crontab.
  'graphile_worker._private_known_crontabs': 'select',
  'graphile_worker._private_jobs': 'select, update, delete',
  'graphile_worker._private_job_queues': 'select, update',
  'pgboss.version': 'select, update (cron_on, flow_on, monitor_backoff_on)',
  // The policies below decide which rows it may write.
  'pgboss.queue': `select, insert, update (deferred_count, blocked_count, queued_count, ready_count, active_count,
    failed_count, total_count, retained_count, retained_on, created_delta, completed_delta, failed_delta, delta_on,
    delta_seconds, ready_history, wait_bins, run_bins, ready_oldest_seconds, singletons_active, monitor_claim_on,
    monitor_on, maintain_on, updated_on)`,
  // It has no rows (src/clock/index.ts), but pg-boss locks and deletes old ones.
  'pgboss.instance': 'select, update, delete',
  'pgboss.schedule': 'select, insert, update',
  'pgboss.job': 'select, insert, update, delete',
  'pgboss.job_common': 'select, insert, update, delete',
  'pgboss.job_dependency': 'select, delete',
}

const functions = ['pgboss.job_now()', 'pgboss.create_queue(text, jsonb)']

const SCHEMAS = 'graphile_worker, pgboss'

/** Revokes what earlier versions granted, then grants the rights above; in one transaction. */
const grants = [
  `revoke all on all tables in schema ${SCHEMAS} from public, postgram_service`,
  `revoke all on all sequences in schema ${SCHEMAS} from public, postgram_service`,
  `revoke all on all functions in schema ${SCHEMAS} from public, postgram_service`,
  `grant usage on schema ${SCHEMAS} to postgram_service`,
  ...Object.entries(tables).map(
    ([table, rights]) => `grant ${rights} on ${table} to postgram_service`,
  ),
  ...functions.map((name) => `grant execute on function ${name} to postgram_service`),
]

/**
 * Three things:
 * - an index for a worker pool with few jobs among many of other pools (src/worker/pool.ts): without it, each query
 *   for a job reads past all of those, which takes half a second with a million jobs;
 * - the rights above;
 * - row security policies: graphile-worker switches row security on for its tables; we do for pgboss.queue, so that
 *   the service creates and changes only queues in the common table.
 */
export const queueRights = `
  create index if not exists postgram_jobs_of_task on graphile_worker._private_jobs (task_id, priority, run_at)
  where is_available;
  ${grants.join(';\n  ')};
  do $$
  declare
    v_table record;
  begin
    for v_table in
      select c.relname from pg_catalog.pg_class c
      where c.relnamespace = 'graphile_worker'::regnamespace and c.relkind = 'r' and c.relrowsecurity
        and not exists (select from pg_catalog.pg_policy p where p.polrelid = c.oid and p.polname = 'postgram_service')
    loop
      execute format(
        'create policy postgram_service on graphile_worker.%I to postgram_service using (true) with check (true)',
        v_table.relname);
    end loop;
    if not exists (select from pg_catalog.pg_policy p where p.polrelid = 'pgboss.queue'::regclass) then
      create policy postgram_service on pgboss.queue to postgram_service
        using (true) with check (not partition and table_name = 'job_common');
      alter table pgboss.queue enable row level security;
    end if;
  end $$`
