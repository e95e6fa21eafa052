import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { ConnectionLost } from '../../src/db/connection-errors.ts'
import { createPool, type PoolOptions } from '../../src/db/pool.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'
import { until } from '../fixtures/time.ts'

const { url } = await createDatabase()

async function poolBehindProxy(options: Partial<PoolOptions> = {}) {
  const proxy = await startDatabaseProxy(url)
  const pool = createPool(proxy.url, { size: 8, waitMs: 60_000, workMs: 60_000, ...options })
  t.teardown(() => pool.end(0))
  const ask = () => pool.use(async (sql) => (await sql`select 1 as one`)[0])
  return { proxy, pool, ask }
}

t.test('Pool: work continues at once after all connections are cut under load', async (t) => {
  const { proxy, pool, ask } = await poolBehindProxy()
  let isRunning = true
  let answers = 0
  const errors: unknown[] = []
  const senders = Array.from({ length: 8 }, async () => {
    while (isRunning) {
      await nextTurn()
      await ask().then(
        () => {
          answers += 1
        },
        (error) => errors.push(error),
      )
    }
  })
  for (let round = 1; round <= 6; round++) {
    const before = answers
    await until('answers', async () => answers > before + 50)
    proxy.cut()
  }
  isRunning = false
  await Promise.all(senders)
  for (const error of errors) t.type(error, ConnectionLost)
  t.ok(errors.length > 0, 'some statements were cut')
  // The last one may have been accepted just now.
  await until('each connection to send its startup message', async () => proxy.silent() === 0)
  t.equal(pool.underWay(), 0)
})

t.test('Pool: work that waits gets whichever connection is free first', async (t) => {
  const { proxy, pool } = await poolBehindProxy({ size: 2 })
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const order: string[] = []
  const work = (name: string, until: Promise<string>) =>
    pool.use(async (sql) => {
      await sql`select`
      order.push(await until)
      return name
    })
  const both = [work('first', first.promise), work('second', second.promise)]
  const third = work('third', Promise.resolve('third'))
  const fourth = work('fourth', Promise.resolve('fourth'))
  t.equal(pool.underWay(), 4)
  second.resolve('second')
  await Promise.all([third, fourth])
  first.resolve('first')
  await Promise.all(both)
  t.same(order, ['second', 'third', 'fourth', 'first'])
  t.equal(proxy.connections(), 2)
})

t.test('Pool: an attempt to connect that hangs is repeated', async (t) => {
  const { proxy, ask } = await poolBehindProxy()
  proxy.set('stall')
  const answer = ask()
  await until('the first attempt', async () => proxy.connections() > 0)
  proxy.set('pass')
  t.same(await answer, { one: 1 })
})

t.test('Pool: work waits for a database that refuses connections, until it is back', async (t) => {
  const { proxy, ask } = await poolBehindProxy()
  proxy.set('refuse')
  const answers = Array.from({ length: 20 }, ask)
  await until('attempts to connect', async () => proxy.connections() > 9)
  proxy.set('pass')
  for (const answer of await Promise.all(answers)) t.same(answer, { one: 1 })
})

t.test('Pool: work that gets no connection in time fails before it begins', async (t) => {
  const { proxy, pool } = await poolBehindProxy({ size: 1 })
  let began = 0
  const work = async () => {
    began += 1
  }
  proxy.set('refuse')
  await t.rejects(pool.use(work, { waitMs: 1 }), { name: 'Unreachable' })
  proxy.set('pass')
  const { promise, resolve } = Promise.withResolvers<void>()
  const busy = pool.use(() => promise)
  await t.rejects(pool.use(work, { waitMs: 1 }), { name: 'Unreachable' })
  t.equal(began, 0)
  resolve()
  await busy
})

t.test('Pool: a connection that is silent for too long is replaced', async (t) => {
  const { proxy, pool, ask } = await poolBehindProxy({ size: 1, workMs: 100 })
  await until('an open connection', () => ask().catch(() => false))
  proxy.set('stall')
  await t.rejects(ask(), { name: 'ConnectionLost' })
  proxy.set('pass')
  t.same(await until('an answer', () => ask().catch(() => null)), { one: 1 })
  t.equal(pool.underWay(), 0)
})

t.test('Pool: an address that cannot work fails at once', async (t) => {
  const wrong = Object.assign(new URL(url), { pathname: '/there_is_no_such_database' }).href
  const pool = createPool(wrong, { size: 1, waitMs: 60_000, workMs: 60_000 })
  await t.rejects(
    pool.use(async () => undefined),
    { code: '3D000' },
  )
  await pool.end(0)
})

t.test('Pool.end(): lets work in progress finish and refuses new work', async (t) => {
  const { pool } = await poolBehindProxy({ size: 1 })
  const began = Promise.withResolvers<void>()
  const { promise, resolve } = Promise.withResolvers<void>()
  const working = pool.use(async (sql) => {
    began.resolve()
    await promise
    return (await sql`select 2 as two`)[0]
  })
  const waiting = pool.use(async () => undefined)
  await began.promise
  const ended = pool.end(60_000)
  await t.rejects(waiting, { name: 'Unreachable' })
  await t.rejects(
    pool.use(async () => undefined),
    { name: 'Unreachable' },
  )
  resolve()
  t.same(await working, { two: 2 })
  await ended
  t.equal(pool.underWay(), 0)
})
