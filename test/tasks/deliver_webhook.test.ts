import { createHmac } from 'node:crypto'
import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { caller } from '../../src/db/call.ts'
import { createSealer } from '../../src/webhooks/secrets.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  addEvents,
  attemptsAt,
  createEndpoint,
  type Received,
  startReceiver,
  stateOf,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['worker'] })
const organisation = await createOrganisation(sql)

const signatureOf = ({ headers }: Received) => String(headers['service-signature'])

/** What Service-Signature has to be over what was received. */
const signed = (received: Received, ...secrets: string[]) => {
  const at = /^t=(\d+),/.exec(signatureOf(received))?.[1]
  const v1 = secrets.map((secret) =>
    createHmac('sha256', secret).update(`${at}.`).update(received.body).digest('hex'),
  )
  return [`t=${at}`, ...v1.map((value) => `v1=${value}`)].join(',')
}

t.test('an event is posted with its exact bytes, signed', async (t) => {
  const receiver = await startReceiver()
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  const before = Math.floor(Date.now() / 1000)
  const [event] = await addEvents(sql, [endpoint], 1)
  await until('the delivery', async () => (await stateOf(sql, endpoint)).waiting === 0)

  const [received] = receiver.received
  if (!received || !event) throw new Error('nothing was received')
  t.equal(receiver.received.length, 1)
  t.ok(received.body.equals(Buffer.from(event.body)))
  const { host, connection, ...headers } = received.headers
  t.ok(host)
  t.same(headers, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(event.body)),
    'service-event-id': event.id,
    'service-signature': signed(received, endpoint.secret),
    'user-agent': 'Postgram/1',
  })
  t.equal(JSON.parse(received.body.toString()).id, event.id)
  const seconds = Number(/^t=(\d+),v1=[0-9a-f]{64}$/.exec(signatureOf(received))?.[1])
  t.ok(seconds >= before && seconds <= received.at.getTime() / 1000)

  t.match(await attemptsAt(sql, endpoint), [
    { event: event.id, attempt: 1, status: 200, error: null, response: 'ok', durationMs: Number },
  ])
  await until('the end of the lease', async () => !(await stateOf(sql, endpoint)).isHeld)
})

t.test('each attempt has the same ID and bytes, and a signature with its own time', async (t) => {
  const receiver = await startReceiver((response) => response.writeHead(503).end('not now'))
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  const [event] = await addEvents(sql, [endpoint], 1)
  await until('the first', async () => (await stateOf(sql, endpoint)).failingSince)
  await until('the end of the lease', async () => !(await stateOf(sql, endpoint)).isHeld)
  const [first] = receiver.received
  if (!first) throw new Error('nothing was received')
  // A signature has whole seconds.
  await until(
    'another second',
    async () => Math.floor(Date.now() / 1000) > first.at.getTime() / 1000,
  )

  receiver.answer = (response) => response.writeHead(204).end()
  await sql`update app.webhook_deliveries set due_at = now()`
  t.match(await sql`select api.enqueue_due_deliveries() as jobs`, [{ jobs: 1 }])
  await until('the second', async () => (await stateOf(sql, endpoint)).waiting === 0)
  const [, second] = receiver.received
  if (!second || !event) throw new Error('nothing was received')
  t.equal(second.headers['service-event-id'], event.id)
  t.ok(second.body.equals(first.body))
  t.equal(signatureOf(second), signed(second, endpoint.secret))
  t.not(signatureOf(second), signatureOf(first))
  t.match(await attemptsAt(sql, endpoint), [
    { attempt: 1, status: 503, error: 'responded 503', response: 'not now' },
    { attempt: 2, status: 204, error: null },
  ])
  t.match(await stateOf(sql, endpoint), { failingSince: null, lastError: null })
})

t.test('for a day after a rotation both secrets sign, the new one first', async (t) => {
  const receiver = await startReceiver()
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  const [rotated] = await sql<{ secret: string }[]>`
    select ops.rotate_webhook_secret(${endpoint.id}) as secret`
  await addEvents(sql, [endpoint], 1)
  await until('the delivery', async () => (await stateOf(sql, endpoint)).waiting === 0)
  await sql`
    update app.webhook_endpoints set old_secret_until = now()
    where id = core.decode_id('we', ${endpoint.id})`
  await addEvents(sql, [endpoint], 1)
  await until('the delivery', async () => (await stateOf(sql, endpoint)).waiting === 0)
  const [during, after] = receiver.received
  if (!during || !after || !rotated) throw new Error('nothing was received')
  t.equal(signatureOf(during), signed(during, rotated.secret, endpoint.secret))
  t.equal(signatureOf(after), signed(after, rotated.secret))
})

t.test('a secret that SECRET_KEY does not open fails the attempt with the remedy', async (t) => {
  const receiver = await startReceiver()
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  await createSealer(caller(sql), createSecrets([Buffer.alloc(32, 9).toString('base64')]))()
  await addEvents(sql, [endpoint], 1)
  await until('the failure', async () => (await stateOf(sql, endpoint)).failingSince)
  t.same(receiver.received, [])
  t.match(await attemptsAt(sql, endpoint), [
    { attempt: 1, status: null, error: /could not be signed.* add the SECRET_KEY of that time/ },
  ])

  const [rotated] = await sql<{ secret: string }[]>`
    select ops.rotate_webhook_secret(${endpoint.id}) as secret`
  await addEvents(sql, [endpoint], 1)
  await until('the delivery', async () => receiver.received.length === 1)
  const [received] = receiver.received
  if (!received) throw new Error('nothing was received')
  t.equal(
    signatureOf(received),
    signed(received, rotated?.secret ?? ''),
    'one that opens is enough',
  )
})

t.test('the response is stored without characters that Postgres cannot store', async (t) => {
  const receiver = await startReceiver((response) => response.end(`\0${'😀'.repeat(2000)}`))
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  await addEvents(sql, [endpoint], 1)
  await until('the delivery', async () => (await stateOf(sql, endpoint)).waiting === 0)
  const [attempt] = await attemptsAt(sql, endpoint)
  t.match(attempt, { status: 200, error: null })
  t.match(attempt?.response, /^\uFFFD?(😀)+\uFFFD?$/u)
})

t.test('one job delivers to several endpoints, also if one of them refuses', async (t) => {
  const receiver = await startReceiver()
  const refusing = await createEndpoint(sql, organisation, { url: 'http://127.0.0.1:9/' })
  const well = await createEndpoint(sql, organisation, { url: receiver.url })
  await addEvents(sql, [refusing, well], 2)
  await until('the deliveries', async () => (await stateOf(sql, well)).waiting === 0)
  await until('the attempts', async () => (await attemptsAt(sql, refusing)).length === 2)
  await until('the job to complete', async () => {
    const jobs = await sql`
      select from graphile_worker._private_jobs j
      join graphile_worker._private_tasks t on t.id = j.task_id
      where t.identifier = 'deliver_webhooks'`
    return jobs.length === 0
  })
  t.equal((await attemptsAt(sql, well)).length, 2)
  t.match(await stateOf(sql, refusing), { waiting: 2, failingSince: Date })
})

t.test('an attempt that was not recorded is repeated', async (t) => {
  const receiver = await startReceiver()
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  await sql`
    revoke execute on function api.finish_deliveries, api.finish_leases from postgram_service`
  const events = await addEvents(sql, [endpoint], 5)
  const [job] = await until('a failed job', async () => {
    const jobs = await sql<{ lastError: string }[]>`
      select last_error from graphile_worker._private_jobs where last_error is not null`
    return jobs.length > 0 && jobs
  })
  t.match(job?.lastError, /permission denied/)
  t.match(await stateOf(sql, endpoint), { waiting: 5, failingSince: null })
  await sql`
    grant execute on function api.finish_deliveries, api.finish_leases to postgram_service`
  await until('the deliveries', async () => (await stateOf(sql, endpoint)).waiting === 0)
  t.ok(receiver.received.length >= 10)
  t.equal(new Set(receiver.received.map(({ headers }) => headers['service-event-id'])).size, 5)
  t.equal((await attemptsAt(sql, endpoint)).length, events.length)
})

t.test(
  'a job with an invalid payload fails alone, and one for a deleted endpoint completes',
  async (t) => {
    await sql`
    select graphile_worker.add_job('deliver_webhook', p.payload::json, max_attempts := 1)
    from unnest(${['null', '{}', '{"endpoint": "we_01"}']}::text[]) as p (payload)`
    const endpoint = await createEndpoint(sql, organisation)
    await sql`
    select core.add_jobs(array[core.delivery_job(e)]) from app.webhook_endpoints e
    where e.id = core.decode_id('we', ${endpoint.id})`
    await sql`
    select graphile_worker.add_job('deliver_webhook',
      json_build_object('endpoint', '01890000-0000-7000-8000-000000000000'))`
    const failed = await until('the failures', async () => {
      const jobs = await sql<{ lastError: string | null }[]>`
      select last_error from graphile_worker._private_jobs`
      return jobs.length === 3 && jobs.every(({ lastError }) => lastError) && jobs
    })
    t.ok(failed.every(({ lastError }) => lastError?.startsWith('Invalid')))
    t.notOk((await stateOf(sql, endpoint)).isHeld)
  },
)
