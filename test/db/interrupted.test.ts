import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { connect, type Sql } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { Interrupted } from '../../src/db/migrate/locks.ts'
import { createDatabase } from '../fixtures/database.ts'
import { afterDatabase, nodeEnv } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

const checkout = new URL('../../', import.meta.url)

const migrateWaits = (sql: Sql) =>
  until('migrate to wait', async () => {
    const [row] = await sql`
      select from pg_stat_activity
      where datname = current_database() and application_name = 'postgram migrate' and wait_event_type = 'Lock'`
    return row
  })

t.test('a signal ends a migrate that waits for a lock', async (t) => {
  const { url, sql } = await createDatabase()
  await sql`update app.code set sha256 = 'another'`
  const reader = connect(url, { max: 1 })
  t.teardown(() => reader.end())
  await reader.begin(async (tx) => {
    await tx`select from ops.organisations`
    for (const [command, signal, code, said] of [
      ['migrate', 'SIGTERM', 1, 'migrate was stopped while it waited. Nothing was changed.\n'],
      ['migrate', 'SIGINT', 1, 'migrate was stopped while it waited. Nothing was changed.\n'],
      ['start', 'SIGTERM', 0, ''],
    ] as const) {
      const child = spawn(process.execPath, ['src/main.ts', command], {
        cwd: checkout,
        env: {
          ...nodeEnv,
          DATABASE_URL: url,
          SECRET_KEY: Buffer.alloc(32).toString('base64'),
          PORT: '0',
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      t.teardown(() => child.kill('SIGKILL'))
      const stderr = text(child.stderr)
      await migrateWaits(sql)
      child.kill(signal)
      t.same(
        [...(await once(child, 'exit')), afterDatabase(await stderr)],
        [code, null, said],
        command,
      )
    }
  })
  t.same([...(await sql`select sha256 from app.code`)], [{ sha256: 'another' }])
})

t.test('a signal ends a migrate that waits for another migrate', async (t) => {
  const { url, sql } = await createDatabase()
  const other = connect(url, { max: 1, applicationName: 'postgram' })
  t.teardown(() => other.end())
  // The lock of migrate, which every version takes.
  await other`select pg_advisory_lock(5402117)`
  const stopping = new AbortController()
  const migrating = migrate(url, { signal: stopping.signal })
  migrating.catch(() => undefined)
  await migrateWaits(sql)
  stopping.abort()
  await t.rejects(migrating, new Interrupted('Nothing was changed.'))
  await t.rejects(
    migrate(url, { signal: stopping.signal }),
    new Interrupted('Nothing was changed.'),
  )
  await other`select pg_advisory_unlock(5402117)`
  await migrate(url)
})

t.test('a signal ends a migrate that is still connecting', async (t) => {
  const { url } = await createDatabase()
  const stopping = new AbortController()
  const migrating = migrate(url, { signal: stopping.signal })
  setImmediate(() => stopping.abort())
  await t.rejects(migrating, new Interrupted('Nothing was changed.'))
})
