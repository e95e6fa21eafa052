import t from 'tap'
import type { Sql } from '../../src/db/client.ts'
import { ownQueues } from '../../src/db/migrate/own-queues.ts'
import { checkQueues } from '../../src/db/migrate/queues.ts'
import { createDatabase, createEmptyDatabase } from '../fixtures/database.ts'
import { addBossMigration, addWorkerMigration, copyVersion } from '../fixtures/deployment.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

const DONE = { code: 0, stdout: '', stderr: '' }

/** Returns the versions in the database: of the queues, the migrations and the code. */
async function versionsIn(sql: Sql) {
  const [row] = await sql`
    select (select max(id) from graphile_worker.migrations) as worker,
      (select version from pgboss.version) as boss,
      (select sha256 from app.code) as code,
      (select count(*)::integer from app.migrations) as migrations,
      to_regclass('graphile_worker.next') is not null as is_worker_next,
      to_regclass('pgboss.next') is not null as is_boss_next`
  return row
}

t.test('ownQueues: returns the versions that the libraries install', async (t) => {
  const { sql } = await createDatabase()
  const [installed] = await sql`
    select (select version from pgboss.version) as boss, json_build_object(
      'last', (select max(id) from graphile_worker.migrations),
      'breaking', (select json_agg(id order by id) from graphile_worker.migrations where breaking)) as worker`
  t.same(await ownQueues(), installed)
})

t.test(
  'migrate: refuses a breaking migration of graphile-worker while an older process runs',
  async (t) => {
    const { url, sql } = await createDatabase()
    const next = await copyVersion()
    await addWorkerMigration(
      next,
      '--! breaking-change\ncreate table :GRAPHILE_WORKER_SCHEMA.next ();',
    )
    const old = await spawnService(url, 'api')
    const before = await versionsIn(sql)
    const refusal = new RegExp(
      [
        '^This version would break processes that run now:',
        `  api on .*, process ${old.child.pid}`,
        'The problems:',
        '  migration 21 of graphile-worker is marked as breaking',
        'Nothing was changed. [^]*node src/main.ts migrate --breaking\n$',
      ].join('\n'),
    )
    for (const command of ['migrate', 'start']) {
      const { code, stderr } = await next.run([command], url)
      t.equal(code, 1, command)
      t.match(stderr, refusal)
      t.same(await versionsIn(sql), before, 'everything is as it was')
    }
    t.equal((await get(`${old.base}/readyz`, null)).status, 200)
    t.equal(await old.end('SIGTERM'), 0)
    t.same(await next.run(['migrate'], url), DONE)
    t.match(await versionsIn(sql), { worker: 21, isWorkerNext: true })

    const again = await spawnService(url, 'api')
    t.equal((await get(`${again.base}/readyz`, null)).status, 200, 'an API alone needs no queue')
    t.equal(await again.end('SIGTERM'), 0)
    const newer =
      'the database has migration 21 of graphile-worker, which is newer than this version and breaks it'
    const older = await copyVersion()
    t.same(await older.run(['start', '--only', 'worker'], url), {
      code: 1,
      stdout: '',
      stderr: `${newer}; upgrade this process\n`,
    })
    const after = await versionsIn(sql)
    for (const args of [['migrate'], ['migrate', '--breaking']]) {
      t.same(await older.run(args, url), {
        code: 1,
        stdout: '',
        stderr: `${newer}: upgrade this one. Nothing was changed.\n`,
      })
    }
    t.same(await versionsIn(sql), after)
  },
)

t.test(
  'migrate: older processes go on after a migration of graphile-worker without the mark',
  async (t) => {
    const { url, sql } = await createDatabase()
    const { liveKey, domain } = await createOrganisation(sql)
    const next = await copyVersion()
    await addWorkerMigration(next, 'create table :GRAPHILE_WORKER_SCHEMA.next ();')
    const old = await spawnService(url)
    t.same(await next.run(['migrate'], url), DONE)
    t.match(await versionsIn(sql), { worker: 21, isWorkerNext: true })
    const isDelivered = async (base: string) => {
      const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
      return until('delivery', async () => {
        const [row] =
          await sql`select from ops.messages where id = ${json.id} and status = 'delivered'`
        return row
      })
    }
    t.ok(await isDelivered(old.base))
    t.equal(await old.end('SIGTERM'), 0)
    const again = await spawnService(url)
    t.ok(await isDelivered(again.base), 'also when they are started again')
    t.equal(await again.end('SIGTERM'), 0)
  },
)

t.test('migrate: refuses another schema of pg-boss while an older clock runs', async (t) => {
  const { url, sql } = await createDatabase()
  const next = await copyVersion()
  await addBossMigration(next, 'create table pgboss.next ()')
  const api = await spawnService(url, 'api')
  const clock = await spawnService(url, 'clock')
  const before = await versionsIn(sql)
  const { code, stderr } = await next.run(['migrate'], url)
  t.equal(code, 1)
  t.match(
    stderr,
    new RegExp(
      [
        '^This version would break processes that run now:',
        `  clock on .*, process ${clock.child.pid}`,
        'The problems:',
        "  pg-boss's schema would be 47, not 46",
        'Nothing was changed. ',
      ].join('\n'),
    ),
  )
  t.same(await versionsIn(sql), before, 'everything is as it was')
  t.equal(await clock.end('SIGTERM'), 0)

  const fresh = await spawnService(url, 'clock', { DATABASE_URL: url }, next.folder)
  t.match(await versionsIn(sql), { boss: 47, isBossNext: true }, 'a start upgrades it as well')
  t.equal((await get(`${api.base}/readyz`, null)).status, 200)
  t.equal(await fresh.end('SIGTERM'), 0)
  t.equal(await api.end('SIGTERM'), 0)

  const newer = 'the database has schema 47 of pg-boss, and this version works with 46 only'
  const older = await copyVersion()
  t.same(await older.run(['start'], url), {
    code: 1,
    stdout: '',
    stderr: `${newer}; upgrade this process\n`,
  })
  t.same(await older.run(['migrate', '--breaking'], url), {
    code: 1,
    stdout: '',
    stderr: `${newer}: upgrade this one. Nothing was changed.\n`,
  })
})

t.test('migrate --breaking: upgrades the queues of running processes', async (t) => {
  const { url, sql } = await createDatabase()
  const next = await copyVersion()
  await addWorkerMigration(
    next,
    '--! breaking-change\ncreate table :GRAPHILE_WORKER_SCHEMA.next ();',
  )
  await addBossMigration(next, 'create table pgboss.next ()')
  const old = await spawnService(url)
  const refused = await next.run(['migrate'], url)
  t.match(
    refused.stderr,
    /^ {2}migration 21 of graphile-worker .*\n {2}pg-boss's schema would be 47/m,
  )
  t.same(await next.run(['migrate', '--breaking'], url), DONE)
  t.match(await versionsIn(sql), { worker: 21, boss: 47, isWorkerNext: true, isBossNext: true })
  t.equal((await get(`${old.base}/readyz`, null)).status, 200, 'requests are still answered')
  t.equal(await old.end('SIGTERM'), 0)
})

t.test('migrate: a refusal after the upgrade of the queues says so', async (t) => {
  const { url, sql } = await createDatabase()
  const next = await copyVersion()
  await addWorkerMigration(next, 'create table :GRAPHILE_WORKER_SCHEMA.next ();')
  await next.add('migrations/9998_next.sql', '--! breaking\ncreate table app.marked ();')
  const old = await spawnService(url, 'api')
  const { stderr } = await next.run(['migrate'], url)
  t.match(
    stderr,
    /9998_next\.sql is marked as breaking\nNothing was changed but the queues' own tables/,
  )
  t.match(await versionsIn(sql), { worker: 21 })
  t.equal(await old.end('SIGTERM'), 0)
})

t.test('checkQueues: refuses nothing in a database without our schema', async (t) => {
  const { sql } = await createEmptyDatabase()
  t.equal(await checkQueues(sql, false), true, 'a fresh database')
  await sql`create schema graphile_worker`
  await sql`create table graphile_worker.migrations (id integer primary key, breaking boolean)`
  await sql`insert into graphile_worker.migrations values (1, true)`
  t.equal(await checkQueues(sql, false), true, 'another program used graphile-worker')
})
