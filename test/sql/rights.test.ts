import { randomUUID } from 'node:crypto'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import {
  createDatabase,
  joinForReports,
  raisedBy,
  rightsIn,
  rolledBack,
} from '../fixtures/database.ts'

const { url, sql } = await createDatabase()

/** All rights of the roles of Postgram and of public: a right that is not listed here fails the test. */
const listed = `
postgram_operator: delete, insert, select on table ops.staged_numbers
postgram_operator: execute on every function in ops
postgram_operator: select on every view in ops
postgram_operator: usage on schema ops
postgram_report: execute on function ops.example(text)
postgram_report: execute on function ops.help(text)
postgram_report: execute on function ops.messages_of(text,timestamp with time zone,integer)
postgram_report: execute on function ops.statement(text,timestamp with time zone)
postgram_report: execute on function ops.timeline(text)
postgram_report: execute on function ops.why(text)
postgram_report: select on every view in ops
postgram_report: select on table ops.staged_numbers
postgram_report: usage on schema ops
postgram_service: delete, insert, select, update on table pgboss.job
postgram_service: delete, insert, select, update on table pgboss.job_common
postgram_service: delete, select on table pgboss.job_dependency
postgram_service: delete, select, update on table graphile_worker._private_jobs
postgram_service: delete, select, update on table pgboss.instance
postgram_service: execute on every function in api
postgram_service: execute on function pgboss.create_queue(text,jsonb)
postgram_service: execute on function pgboss.job_now()
postgram_service: insert, select on table graphile_worker._private_tasks
postgram_service: insert, select on table pgboss.queue
postgram_service: insert, select, update on table pgboss.schedule
postgram_service: select on table graphile_worker._private_known_crontabs
postgram_service: select on table graphile_worker.migrations
postgram_service: select on table pgboss.version
postgram_service: select, update on table graphile_worker._private_job_queues
postgram_service: set on parameter temp_file_limit
postgram_service: update on columns of pgboss.queue (deferred_count, blocked_count, queued_count, ready_count, active_count, failed_count, total_count, retained_count, retained_on, created_delta, completed_delta, failed_delta, delta_on, delta_seconds, wait_bins, run_bins, ready_oldest_seconds, ready_history, singletons_active, monitor_claim_on, monitor_on, maintain_on, updated_on)
postgram_service: update on columns of pgboss.version (cron_on, flow_on, monitor_backoff_on)
postgram_service: usage on schema api
postgram_service: usage on schema graphile_worker
postgram_service: usage on schema pgboss
public: connect on database current
public: execute on every function in core
public: usage on every type in api
public: usage on every type in app
public: usage on every type in core
public: usage on schema public
public: usage on type graphile_worker.job_spec
public: usage on type pgboss.job_state`
  .trim()
  .split('\n')

t.test('the roles and public have the listed rights and no others', async (t) => {
  t.same(await rightsIn(sql), listed)
})

t.test('the list of rights detects any other right', async (t) => {
  const [name] = await sql`select current_database() as name`
  for (const [grant, line] of [
    ['trigger on pgboss.job to postgram_service', /postgram_service: .*trigger.* on table pgboss/],
    ['select (name) on app.plans to postgram_report', 'select on columns of app.plans (name)'],
    ['usage on sequence app.events_id_seq to public', 'usage on sequence app.events_id_seq'],
    ['create on schema app to postgram_operator', 'create on schema app'],
    [`temporary on database ${name?.name} to postgram_service`, 'temporary on database current'],
    ['set on parameter session_replication_role to postgram_service', 'set on parameter'],
  ] as const) {
    await rolledBack(sql, async (tx) => {
      await tx.unsafe(`grant ${grant}`)
      const found = (await rightsIn(tx as never)).filter((right) => !listed.includes(right))
      t.match(found.join('\n'), line, grant)
    })
  }
})

t.test('core.make_everywhere: operators and reports may read schema everywhere', async (t) => {
  await rolledBack(sql, async (tx) => {
    await joinForReports(tx)
    await tx`select core.make_everywhere()`
    const found = (await rightsIn(tx as never)).filter((right) => !listed.includes(right))
    t.same(found, [
      'postgram_operator: select on every view in everywhere',
      'postgram_operator: usage on schema everywhere',
      'postgram_report: select on every view in everywhere',
      'postgram_report: usage on schema everywhere',
    ])
  })
})

t.test('migrate: revokes old grants on the queues and the database', async (t) => {
  const [name] = await sql`select current_database() as name`
  await sql.unsafe(`
    grant all on all tables in schema graphile_worker, pgboss to postgram_service;
    grant all on all sequences in schema graphile_worker, pgboss to postgram_service;
    grant all on all functions in schema graphile_worker, pgboss to public, postgram_service;
    grant temporary on database ${name?.name} to public`)
  t.not((await rightsIn(sql)).length, listed.length)
  await migrate(url)
  t.same(await rightsIn(sql), listed)
})

t.test('a service login cannot make the owner run its code through the queues', async (t) => {
  const login = `service_${randomUUID().replaceAll('-', '')}`
  await sql.unsafe(`create role ${login} login in role postgram_service`)
  const service = connect(url, { max: 1 })
  t.teardown(async () => {
    await service.end()
    await sql.unsafe(`drop owned by ${login}`)
    await sql.unsafe(`drop role ${login}`)
  })
  await service.unsafe(`set session authorization ${login}`)
  const tables = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relnamespace in ('graphile_worker'::regnamespace, 'pgboss'::regnamespace)
      and c.relkind in ('r', 'p')`
  t.ok(tables.length > 10)
  const attacks = [
    ...tables.flatMap(({ name }) => [
      `create trigger mine before insert on ${name} for each row execute function pg_catalog.suppress_redundant_updates_trigger()`,
      `create rule mine as on insert to ${name} do also select 1`,
      `alter table ${name} add mine text`,
      `truncate ${name}`,
    ]),
    'create table pgboss.mine ()',
    "create function pgboss.mine() returns trigger language plpgsql as 'begin return new; end'",
    'create or replace function pgboss.job_now() returns timestamptz language sql as $$ select now() $$',
    // migrate executes the commands in this table.
    `insert into pgboss.bam (name, version, table_name, command) values ('mine', 1, 'job', 'alter role ${login} superuser')`,
    `select pgboss.job_table_run_async('mine', 1, 'alter role ${login} superuser')`,
    // pg-boss puts these into its statements.
    "update pgboss.queue set table_name = 'job_common; select 1; --'",
    'update pgboss.queue set partition = true',
    `insert into pgboss.queue (name, policy, retry_limit, retry_delay, retry_backoff, expire_seconds, retention_seconds,
      deletion_seconds, partition, table_name)
      values ('mine', 'standard', 0, 0, false, 1, 1, 1, false, 'mine; select 1; --')`,
    'update pgboss.version set version = 1',
    'update graphile_worker.migrations set breaking = true',
  ]
  for (const attack of attacks) {
    await service.begin(async (tx) => {
      const { code, message } = await raisedBy(tx, (inner) => inner.unsafe(attack))
      // A violation of row security has the same code.
      t.equal(code, '42501', `${attack}: ${message}`)
    })
  }
  await service`select pgboss.create_queue('a-queue', '{"policy": "standard"}')`
  const refused = service`select pgboss.create_queue('parts', '{"policy": "standard", "partition": true}')`
  await t.rejects(refused, { code: '42501' }, 'a queue cannot have a separate table')
  const [role] = await sql`select rolsuper as is_super from pg_roles where rolname = ${login}`
  t.same(role, { isSuper: false })
})
