import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  addEvents,
  createEndpoints,
  type Received,
  startReceiver,
  type TestEvent,
  waitingAt,
} from '../fixtures/webhooks.ts'

const ENDPOINTS = 20
/** For each endpoint: fewer than it may have in progress at a time. */
const AT_EACH = 25
const DELIVERIES = ENDPOINTS * AT_EACH

/** The promised limit of a stop. */
const STOP_SECONDS = 15

const { url, sql } = await createDatabase()
// Frees the jobs of processes that are gone.
await startTestService(url, { roles: ['api'] })
const startWorker = (env: Record<string, string> = {}) =>
  spawnService(url, 'worker', { WEBHOOK_ALLOW_PRIVATE: 'true', ...env })

/** A module that holds the time limit of posts, 10 s, which a busy machine may need for all of them. */
const NO_POST_TIMEOUT = `data:text/javascript,${encodeURIComponent(`
  const begin = setTimeout
  const held = (run, ms, ...args) => begin(run, ms === 10_000 ? 3_600_000 : ms, ...args)
  globalThis.setTimeout = Object.assign(held, begin)`)}`

/** An event at one of the endpoints, each with its own path. */
const deliveryOf = ({ path, headers }: Received) => `${path} ${headers['service-event-id']}`

/** Endpoints at one receiver, with so many events at each; what is to be delivered there. */
async function setUp(receiver: { url: string }) {
  const endpoints = await createEndpoints(sql, ENDPOINTS, (place) => `${receiver.url}/${place}`)
  const events: TestEvent[] = []
  const expected: string[] = []
  for (const [place, endpoint] of endpoints.entries()) {
    const added = await addEvents(sql, [endpoint], AT_EACH)
    events.push(...added)
    expected.push(...added.map(({ id }) => `/hook/${place} ${id}`))
  }
  return { endpoints, expected, bodies: new Map(events.map(({ id, body }) => [id, body])) }
}

t.test(
  'worker killed: no event is lost, and only deliveries in progress are repeated',
  async (t) => {
    const victim = await startWorker({ NODE_OPTIONS: `--import=${NO_POST_TIMEOUT}` })
    const open = new Map<string, ServerResponse>()
    const receiver = await startReceiver((response, received) => {
      open.set(deliveryOf(received), response)
    })
    const { endpoints, expected, bodies } = await setUp(receiver)
    await until('all to be under way', async () => open.size === DELIVERIES)

    const recorded = async () => {
      const rows = await sql<{ event: string }[]>`
      select core.encode_id('evt', event_id) as event from app.webhook_attempts`
      return rows.map(({ event }) => event)
    }
    // One third gets a response and is recorded, one gets a response and cannot be recorded, one gets none.
    const answer = (deliveries: string[]) => {
      for (const delivery of deliveries) open.get(delivery)?.end()
    }
    const third = Math.floor(DELIVERIES / 3)
    answer(expected.slice(0, third))
    await until('a third to be recorded', async () => (await recorded()).length === third)
    await sql.begin(async (tx) => {
      await tx`select from app.webhook_endpoints for update`
      answer(expected.slice(third, 2 * third))
      await untilLocked(sql)
      await victim.end('SIGKILL')
      // Otherwise they would continue later and fail only then, because nothing listens.
      await tx`
      select pg_terminate_backend(a.pid, 5000) from pg_stat_activity a
      where a.datname = current_database() and a.query ~ 'api\\.(start_deliveries|finish_)'
        and a.pid <> pg_backend_pid()`
    })
    const before = new Set(await recorded())
    t.equal(before.size, third)
    t.equal(receiver.received.length, DELIVERIES)

    receiver.answer = (response) => response.end()
    const next = await startWorker()
    await until('all', async () => (await waitingAt(sql, endpoints)) === 0)
    t.equal(await next.end('SIGTERM'), 0)
    const repeated = receiver.received.slice(DELIVERIES).map(deliveryOf)
    t.same(
      repeated.toSorted(),
      expected.filter((delivery) => !before.has(delivery.split(' ')[1] ?? '')).toSorted(),
      'each delivery without an outcome was repeated once',
    )
    t.same(new Set(receiver.received.map(deliveryOf)), new Set(expected))
    for (const { headers, body } of receiver.received) {
      const id = String(headers['service-event-id'])
      if (body.toString() !== bodies.get(id)) t.fail(`${id} has another body`)
    }
    const [attempts] = await sql`
    select count(*)::integer as recorded, count(distinct event_id)::integer as events, max(attempt) as last
    from app.webhook_attempts where error is null`
    t.same(attempts, { recorded: DELIVERIES, events: DELIVERIES, last: 1 })
  },
)

t.test('worker stopped: finishes the deliveries in progress and releases the rest', async (t) => {
  // Set here, so that no delivery times out before all are in progress.
  const worker = await startTestService(url, {
    roles: ['worker'],
    webhookTimeoutMs: 600_000,
    secrets: createSecrets([Buffer.alloc(32).toString('base64')]),
  })
  const receiver = await startReceiver()
  const hung: ServerResponse[] = []
  const silent = await startReceiver((response) => hung.push(response))
  const [endpoint] = await createEndpoints(sql, 1, () => silent.url)
  if (!endpoint) throw new Error('no endpoint')
  await addEvents(sql, [endpoint], 1)
  await until('a post that hangs', async () => hung.length === 1)
  receiver.answer = (response) => hung.push(response)
  const { endpoints, expected } = await setUp(receiver)
  const more: string[] = []
  for (const [place, one] of endpoints.entries()) {
    const added = await addEvents(sql, [one], AT_EACH)
    more.push(...added.map(({ id }) => `/hook/${place} ${id}`))
  }
  await until('a full window everywhere', async () => hung.length === 32 * ENDPOINTS + 1)

  const stoppedAt = performance.now()
  const ending = worker.stop()
  receiver.answer = (response) => response.end()
  for (const response of hung.slice(1)) response.end()
  await ending
  const seconds = (performance.now() - stoppedAt) / 1000
  t.comment(`stopped in ${seconds.toFixed(1)} s with ${receiver.received.length} posted`)
  t.ok(seconds < STOP_SECONDS)
  const left = await sql`
    select from graphile_worker._private_jobs where locked_at is not null
    union all
    select from app.webhook_endpoints where lease_job_id is not null`
  t.equal(left.length, 0)
  t.equal(await waitingAt(sql, [endpoint]), 1)
  t.equal(await waitingAt(sql, endpoints), 2 * DELIVERIES - receiver.received.length)

  const next = await startWorker()
  await until('the rest', async () => (await waitingAt(sql, endpoints)) === 0)
  t.equal(await next.end('SIGTERM'), 0)
  t.same(
    receiver.received.map(deliveryOf).toSorted(),
    [...expected, ...more].toSorted(),
    'each was posted once',
  )
})
