import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { messageOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import {
  initialise,
  noPostgres,
  serverFolder,
  startServer,
  startStandby,
} from '../fixtures/postgres.ts'
import { runCommand } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const READ_ONLY = '25006'

/** A call of each function of ops that only reads. */
const readingCalls = {
  example: "ops.example('pause')",
  export_person: "ops.export_person('reader@receiver.example')",
  help: "ops.help('statement')",
  messages_of: "ops.messages_of('reader@receiver.example')",
  statement: "ops.statement('Test')",
  timeline: 'ops.timeline($1)',
  why: 'ops.why($1)',
}

t.test('ops on a standby', { skip: noPostgres }, async (t) => {
  const folder = await serverFolder()
  await initialise(join(folder, 'primary'))
  const primary = await startServer(join(folder, 'primary'), ['fsync = off'])
  const ownerUrl = primary.urlOf('postgres', 'postgres')
  await migrate(ownerUrl)
  const connectTo = (t: Test, url: string) => {
    const sql = connect(url, { max: 1 })
    t.teardown(() => sql.end())
    return sql
  }
  const sql = connectTo(t, ownerUrl)
  await sql.unsafe('create role bob login in role postgram_report')
  await sql.unsafe('create role alice login in role postgram_operator')
  const standby = await startStandby(primary, join(folder, 'standby'))
  const report = connectTo(t, standby.urlOf('bob', 'postgres'))
  const operator = connectTo(t, standby.urlOf('alice', 'postgres'))
  /** Waits until the standby has all that the primary has committed. */
  const replay = async () => {
    const [position] = await sql`select pg_current_wal_lsn() as written`
    await until('the standby to catch up', async () => {
      const [row] =
        await report`select pg_last_wal_replay_lsn() >= ${position?.written} as has_replayed`
      return row?.hasReplayed
    })
  }

  const { base } = await startTestService(ownerUrl)
  const { id: organisation, liveKey, domain } = await createOrganisation(sql)
  await sql`select ops.create_template(${organisation}, 'Hello', 'Hello {{a}}', '{{b}}', null)`
  await sql`select ops.create_webhook_endpoint(${organisation}, 'https://receiver.example', array['email.delivered'])`
  const email = anEmail(domain, { to: 'reader@receiver.example' })
  const { status, json, text } = await post(`${base}/v1/emails`, liveKey, email)
  t.equal(status, 200, text)
  const message: string = json.id
  await until('delivery', async () => (await messageOf(sql, message)).status === 'delivered')
  await until('readiness of the clock', async () => {
    const failed = await sql`select from ops.checks where name in ('worker', 'clock') and not ok`
    return failed.length === 0
  })
  await replay()

  t.test('postgram_report reads every view', async (t) => {
    const views = await sql<{ name: string }[]>`
      select relname as name from pg_class where relnamespace = 'ops'::regnamespace and relkind in ('v', 'r')`
    t.ok(views.length > 40)
    for (const { name } of views) {
      await report.unsafe(`select * from ops.${name}`).catch((error) => t.fail(`${name}: ${error}`))
    }
    t.equal((await report`select from ops.messages where id = ${message}`).length, 1)
  })

  t.test('each function that only reads returns what the primary returns', async (t) => {
    const reading = await sql<{ name: string; isForReports: boolean }[]>`
      select p.proname as name, has_function_privilege('bob', p.oid, 'execute') as is_for_reports
      from pg_proc p where p.pronamespace = 'ops'::regnamespace and p.provolatile <> 'v' order by 1`
    t.same(
      reading.map(({ name }) => name),
      Object.keys(readingCalls),
    )
    for (const { name, isForReports } of reading) {
      const call = readingCalls[name as keyof typeof readingCalls]
      const statement = `select * from ${call}`
      const args = call.includes('$1') ? [message] : []
      const rows = await (isForReports ? report : operator).unsafe(statement, args)
      t.ok(rows.length > 0, name)
      t.same([...rows], [...(await sql.unsafe(statement, args))], name)
    }
  })

  t.test('processes of the primary are alive by their heartbeats', async (t) => {
    const roles =
      await report`select roles, is_alive from ops.processes where 'worker' = any (roles)`
    t.ok(roles.length > 0)
    t.ok(roles.every(({ isAlive }) => isAlive))
    const names = ['worker', 'clock', 'heartbeats', 'synchronous standbys']
    const checks = await report`select name from ops.checks where name = any (${names}) and ok`
    t.same(checks.map(({ name }) => name).sort(), names.sort())
  })

  t.test('a process without a heartbeat for 30 s is gone', async (t) => {
    const owner = connectTo(t, standby.urlOf('postgres', 'postgres'))
    const [process] = await owner`
      select core.is_alive(jsonb_populate_record(p, jsonb_build_object('heartbeat_at', now() - interval '29 seconds'))) as lately,
        core.is_alive(jsonb_populate_record(p, jsonb_build_object('heartbeat_at', now() - interval '31 seconds'))) as before
      from app.processes p limit 1`
    t.same(process, { lately: true, before: false })
  })

  t.test('functions that change something are refused as read-only', async (t) => {
    for (const statement of [
      `select ops.pause('${organisation}', 'test')`,
      "select ops.block_number('+27821234567')",
      "select ops.create_organisation('Other', 'owner@example.net')",
      `select ops.create_api_key('${organisation}', 'live')`,
      `select ops.retry_message('${message}')`,
    ]) {
      const error = await operator.unsafe(statement).then(
        () => null,
        (error) => error,
      )
      t.match(error, { code: READ_ONLY, message: /read-only transaction/ }, statement)
    }
  })

  t.test('sql reads a standby; sql --write and migrate refuse it', async (t) => {
    const env = { MIGRATE_DATABASE_URL: standby.urlOf('postgres', 'postgres') }
    const { code, stdout } = await runCommand(['sql', 'select id from ops.messages'], env)
    t.equal(code, 0)
    t.match(stdout, message)
    const pause = `select ops.pause('${organisation}', 'test')`
    for (const args of [['sql', '--write', pause], ['migrate']]) {
      const refused = await runCommand(args, env)
      t.equal(refused.code, 1)
      t.match(refused.stderr, /read-only transaction|standby/)
    }
  })
})
