import t from 'tap'
import { ConnectionLost } from '../../src/db/connection-errors.ts'
import { createQueuePool } from '../../src/db/queue-pool.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'
import { HELD_MS, holdLimits, until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

async function queuePool(address: string, settings: Record<string, string> = {}) {
  const losses: Error[] = []
  const pool = createQueuePool(address, {
    settings,
    max: 1,
    onLost: (error) => losses.push(error),
  })
  t.teardown(() => pool.end())
  /** Queries as graphile-worker does, which releases a client without its error. */
  const ask = async (text: string) => {
    const client = await pool.connect()
    try {
      const { rows } = await client.query(text)
      return rows[0]
    } finally {
      client.release()
    }
  }
  return { pool, ask, losses }
}

t.test(
  'createQueuePool: a connection on which a write was refused as read-only is replaced',
  async (t) => {
    await sql`create table public.written ()`
    await sql`grant insert on public.written to postgram_service`
    const { ask } = await queuePool(url, { default_transaction_read_only: 'on' })
    const { pid } = await ask('select pg_backend_pid() as pid')
    t.same(await ask('select pg_backend_pid() as pid'), { pid }, 'one that works is kept')
    await t.rejects(ask('insert into public.written default values'), { code: '25006' })
    const next = await until('a connection', () =>
      ask('select pg_backend_pid() as pid').catch(() => null),
    )
    t.not(next.pid, pid)
  },
)

t.test('createQueuePool: a connection that the server ends is one loss', async (t) => {
  const { pool, losses } = await queuePool(url)
  const end = async (pid: number) => {
    const before = losses.length
    await sql`select pg_terminate_backend(${pid})`
    await until('the loss', async () => losses.length > before)
  }
  const { rows } = await pool.query('select pg_backend_pid() as pid')
  await end(rows[0].pid)
  const client = await pool.connect()
  const held = await client.query('select pg_backend_pid() as pid')
  const closed = new Promise((resolve) => client.once('end', resolve))
  await end(held.rows[0].pid)
  await closed
  client.release()
  for (const loss of losses) t.type(loss, ConnectionLost)
  t.equal(losses.length, 2)
})

t.test('createQueuePool: a silent connection is closed', async (t) => {
  const proxy = await startDatabaseProxy(url)
  const { pool, ask } = await queuePool(proxy.url)
  pool.options.query_timeout = HELD_MS
  const limits = holdLimits(t)
  t.same(await ask('select 1 as one'), { one: 1 })
  proxy.set('stall')
  const stalled = ask('select 2 as two')
  await until('the limit', async () => limits.count() > 0)
  limits.endAll()
  await t.rejects(stalled, { message: 'Query read timeout' })
  proxy.set('pass')
  t.same(await until('an answer', () => ask('select 3 as three').catch(() => null)), { three: 3 })
})
