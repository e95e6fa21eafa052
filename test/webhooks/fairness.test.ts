import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, post } from '../fixtures/http.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  addEvents,
  createEndpoints,
  startReceiver,
  stateOf,
  waitingAt,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()

/** Two services in this process, each with its own pool, share endpoints as two processes do. */
const patient = { webhookTimeoutMs: 600_000, workerConcurrency: 2, smsConcurrency: 2 }
const { base } = await startTestService(url, { roles: ['api', 'worker'], ...patient })
const organisation = await createOrganisation(sql)

/** A receiver that does not respond before `letGo()`, with its endpoints. */
async function hanging(count: number) {
  const open = new Set<ServerResponse>()
  const receiver = await startReceiver((response) => open.add(response))
  const endpoints = await createEndpoints(sql, count, () => receiver.url)
  const letGo = () => {
    receiver.answer = (response) => response.end()
    for (const response of open) response.end()
  }
  return { open, endpoints, letGo, received: receiver.received }
}

async function healthy(count: number) {
  const receiver = await startReceiver()
  return {
    endpoints: await createEndpoints(sql, count, () => receiver.url),
    received: receiver.received,
  }
}

const idsOf = (received: { headers: NodeJS.Dict<string | string[]> }[]) =>
  received.map(({ headers }) => headers['service-event-id'])

t.test('a hanging endpoint delays neither other endpoints nor messages', async (t) => {
  const slow = await hanging(1)
  await addEvents(sql, slow.endpoints, 100)
  await until('as many posts as allowed', async () => slow.open.size === 32)
  const others = await healthy(50)
  await addEvents(sql, others.endpoints, 10)
  await until('the others', async () => (await waitingAt(sql, others.endpoints)) === 0)
  t.equal(others.received.length, 500)
  const [waits] = await sql<{ ms: number }[]>`
    select percentile_disc(0.99) within group (
      order by 1000 * extract(epoch from a.started_at - e.occurred_at) + a.duration_ms)::integer as ms
    from app.webhook_attempts a join app.webhook_events e on e.id = a.event_id`
  t.comment(`99 of 100 deliveries to healthy endpoints took ${waits?.ms} ms or less`)

  const email = await send(base, organisation, { to: 'delivered@sandbox.postgram.test' })
  const { json } = await post(`${base}/v1/sms`, organisation.liveKey, anSms())
  for (const id of [email, json.id]) {
    await until('the attempt', async () => (await messageOf(sql, id)).status !== 'queued')
  }
  t.equal(slow.open.size, 32, 'meanwhile the endpoint had no more posts than its share')
  t.equal(await waitingAt(sql, slow.endpoints), 100)
  slow.letGo()
  await until('its own', async () => (await waitingAt(sql, slow.endpoints)) === 0)
  t.equal(new Set(idsOf(slow.received)).size, 100)
  t.equal(slow.received.length, 100)
})

t.test('many failing and hanging endpoints do not delay the others', async (t) => {
  const slow = await hanging(130)
  await sql`
    update app.webhook_endpoints set failing_since = now()
    where core.encode_id('we', id) = any (${slow.endpoints.map(({ id }) => id)}::text[])`
  await addEvents(sql, slow.endpoints, 6)
  await until('their share', async () => slow.open.size === 100 * 4)
  // Deferred until the end of the test instead of some seconds.
  await until('the rest to be deferred', async () => {
    const later = await sql`
      update graphile_worker._private_jobs j set run_at = now() + interval '1 hour'
      from graphile_worker._private_tasks t
      where t.id = j.task_id and t.identifier = 'deliver_webhook' and j.run_at > now() and j.priority = 10
      returning j.id`
    return later.length === 30
  })
  const others = await healthy(50)
  await addEvents(sql, others.endpoints, 10)
  await until('the others', async () => (await waitingAt(sql, others.endpoints)) === 0)
  t.equal(others.received.length, 500)
  t.equal(slow.open.size, 100 * 4)
  slow.letGo()
  await until('places to be free', async () => {
    const jobs = await sql`select from graphile_worker._private_jobs`
    return jobs.length === 30
  })
  await sql`update graphile_worker._private_jobs set run_at = now() where run_at > now()`
  await until('their own', async () => (await waitingAt(sql, slow.endpoints)) === 0)
  t.equal(slow.received.length, 130 * 6)
})

t.test('two workers share an endpoint by leases, and each event is posted once', async (t) => {
  const other = await startTestService(url, { roles: ['worker'], ...patient })
  const EVENTS = 200
  for (const [share, failing] of [
    [32, false],
    [4, true],
  ] as const) {
    let most = 0
    const slow = await hanging(1)
    const [endpoint] = slow.endpoints
    if (!endpoint) throw new Error('no endpoint')
    if (failing) {
      await sql`
        update app.webhook_endpoints set failing_since = now()
        where id = core.decode_id('we', ${endpoint.id})`
      await addEvents(sql, slow.endpoints, EVENTS - 50)
    }
    // Each event has a job that one of the workers takes.
    const jobs = failing ? 50 : EVENTS
    for (let place = 0; place < jobs; place += 1) await addEvents(sql, slow.endpoints, 1)
    await until('as many posts as allowed', async () => slow.open.size >= share)
    const left = await until('no other job to be left', async () => {
      const rows = await sql`select from graphile_worker._private_jobs`
      return rows.length <= 1 && rows
    })
    t.equal(left.length, 1, 'the job of the lease')
    t.equal(slow.open.size, share)
    slow.open.forEach((response) => {
      response.on('close', () => slow.open.delete(response))
    })
    slow.letGo()
    await until('all', async () => {
      most = Math.max(most, slow.open.size)
      return (await waitingAt(sql, slow.endpoints)) === 0
    })
    t.ok(most <= share)
    t.equal(slow.received.length, EVENTS)
    t.equal(new Set(idsOf(slow.received)).size, EVENTS)
    t.match(await stateOf(sql, endpoint), { failingSince: null })
  }
  await other.stop()
})
