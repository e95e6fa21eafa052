/**
 * The rights of the service on the queues' own tables: the libraries work on them directly, as the service,
 * and need no others. Jobs are added by functions of core, as the owner. No right may lead to code that
 * runs as the owner:
 *
 * - a trigger runs as whoever writes to its table;
 * - migrate executes the commands in pgboss.bam;
 * - pg-boss puts the table names in pgboss.queue into statements, also those of migrate.
 */
const tables: Record<string, string> = {
  'graphile_worker.migrations': 'select',
  'graphile_worker._private_tasks': 'select, insert',
  // It looks for scheduled tasks at start, though it has none.
  'graphile_worker._private_known_crontabs': 'select',
  'graphile_worker._private_jobs': 'select, update, delete',
  'graphile_worker._private_job_queues': 'select, update',
  'pgboss.version': 'select, update (cron_on, flow_on, monitor_backoff_on)',
  // Which rows it may write, the policies below decide.
  'pgboss.queue': `select, insert, update (deferred_count, queued_count, ready_count, active_count, failed_count,
    total_count, created_delta, completed_delta, failed_delta, delta_on, delta_seconds, ready_history,
    singletons_active, monitor_claim_on, monitor_on, maintain_on, updated_on)`,
  'pgboss.schedule': 'select, insert, update',
  'pgboss.job': 'select, insert, update, delete',
  'pgboss.job_common': 'select, insert, update, delete',
  'pgboss.job_dependency': 'select, delete',
}

const functions = ['pgboss.job_now()', 'pgboss.create_queue(text, jsonb)']

const SCHEMAS = 'graphile_worker, pgboss'

/** Takes away all that earlier versions granted, then grants the above; in one transaction. */
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
 * The rights; the policies of row security, which graphile-worker switches on and we do for queues, so that
 * the service makes and changes only those in the common table; and an index for a worker pool whose tasks are few among many: without it each look for a job walks past
 * all of those, which takes half a second behind a million (src/worker/pool.ts).
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
