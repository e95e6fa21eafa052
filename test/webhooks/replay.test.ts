import { createHmac } from 'node:crypto'
import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { createDatabase } from '../fixtures/database.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  attemptsAt,
  clearDeliveries,
  createEndpoint,
  type Received,
  startReceiver,
  stateOf,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url)

const idOf = ({ headers }: Received) => String(headers['service-event-id'])
const isSignedWith = (secret: string) => (received: Received) => {
  const signature = String(received.headers['service-signature'])
  const at = /^t=(\d+),/.exec(signature)?.[1]
  const hmac = createHmac('sha256', secret).update(`${at}.`).update(received.body).digest('hex')
  return signature.split(',').includes(`v1=${hmac}`)
}

/** A receiver and an endpoint with its URL, for events of these types. */
async function setUp(types: string[] = ['email.delivered']) {
  const organisation = await createOrganisation(sql)
  const receiver = await startReceiver()
  const endpoint = await createEndpoint(sql, organisation, { types, url: receiver.url })
  const received = (count: number) =>
    until(`${count} posts`, async () => receiver.received.length >= count)
  const settled = () =>
    until('all deliveries', async () => (await stateOf(sql, endpoint)).waiting === 0)
  return { organisation, receiver, endpoint, received, settled }
}

t.test('a test event of each type arrives, signed like any other', async (t) => {
  const { receiver, endpoint, settled } = await setUp(['sms.opted_out'])
  const sent = new Map<string, string>()
  for (const type of enums.webhook_event_type) {
    const [row] = await sql<
      { id: string }[]
    >`select ops.send_test_event(${endpoint.id}, ${type}) as id`
    sent.set(String(row?.id), type)
  }
  await settled()
  t.equal(receiver.received.length, enums.webhook_event_type.length)
  for (const received of receiver.received) {
    const { id, type } = JSON.parse(received.body.toString())
    t.equal(id, idOf(received))
    t.equal(sent.get(id), type)
    t.ok(isSignedWith(endpoint.secret)(received), type)
  }
})

t.test('a replayed event arrives with the same id and bytes', async (t) => {
  const { organisation, receiver, endpoint, received, settled } = await setUp()
  const message = await send(base, organisation)
  await received(1)
  await settled()
  const [first] = receiver.received
  if (!first) throw new Error('nothing was received')
  t.match(JSON.parse(first.body.toString()), { data: { id: message, status: 'delivered' } })

  await sql`select ops.replay_event(${idOf(first)})`
  await received(2)
  await settled()
  await sql`select ops.replay_events(${organisation.id}, now() - interval '1 day', now() + interval '1 day')`
  await received(3)
  await settled()
  t.equal(receiver.received.length, 3)
  for (const again of receiver.received) {
    t.equal(idOf(again), idOf(first))
    t.ok(again.body.equals(first.body))
    t.ok(isSignedWith(endpoint.secret)(again))
  }
  t.match(await attemptsAt(sql, endpoint), Array(3).fill({ attempt: 1, error: null }))
})

t.test('after a rotation both secrets sign for a day', async (t) => {
  const { receiver, endpoint, received } = await setUp()
  const [row] = await sql<{ secret: string }[]>`
    select ops.rotate_webhook_secret(${endpoint.id}) as secret`
  const isNew = isSignedWith(String(row?.secret))
  const isOld = isSignedWith(endpoint.secret)
  await sql`select ops.send_test_event(${endpoint.id}, 'email.sent')`
  await received(1)
  await sql`
    update app.webhook_endpoints set old_secret_until = old_secret_until - interval '24 hours'
    where id = core.decode_id('we', ${endpoint.id})`
  await sql`select ops.send_test_event(${endpoint.id}, 'email.sent')`
  await received(2)
  t.same(receiver.received.map(isNew), [true, true])
  t.same(receiver.received.map(isOld), [true, false])
})

t.test('enabling an endpoint with replay delivers what it missed', async (t) => {
  const { organisation, receiver, endpoint, received, settled } = await setUp()
  await send(base, organisation)
  await received(1)
  receiver.answer = (response) => response.writeHead(500).end()
  const failed = await send(base, organisation)
  await until('the failure', async () => (await stateOf(sql, endpoint)).failingSince)
  await sql`
    update app.webhook_endpoints set failing_since = now() - interval '4 days'
    where id = core.decode_id('we', ${endpoint.id})`
  await sql`select api.check_failing_endpoints()`
  await clearDeliveries(sql)
  t.match(await stateOf(sql, endpoint), { disabledAt: Date, disabledReason: null, waiting: 0 })
  const meanwhile = await send(base, organisation)
  await until('the event', async () => {
    const [row] = await sql`
      select from app.webhook_events where message_id = core.decode_id('em', ${meanwhile})`
    return row
  })

  receiver.answer = (response) => response.end()
  const enable = (replay: boolean) =>
    sql`select ops.enable_webhook_endpoint(${endpoint.id}, ${replay}) as count`
  t.same([...(await enable(false))], [{ count: '2' }])
  const posts = receiver.received.length
  t.same([...(await enable(true))], [{ count: '2' }])
  await received(posts + 2)
  await settled()
  t.same(
    receiver.received
      .slice(posts)
      .map(({ body }) => JSON.parse(body.toString()).data.id)
      .sort(),
    [failed, meanwhile].sort(),
  )
  t.match(await stateOf(sql, endpoint), { disabledAt: null, failingSince: null, lastError: null })
  t.same([...(await enable(true))], [{ count: '0' }], 'after that no event is missed')
})

t.test('a changed URL applies from the next event', async (t) => {
  const { endpoint, receiver, received } = await setUp()
  const next = await startReceiver()
  await sql`select ops.send_test_event(${endpoint.id}, 'email.sent')`
  await received(1)
  await sql`select ops.set_webhook_endpoint(${endpoint.id}, ${next.url})`
  await sql`select ops.send_test_event(${endpoint.id}, 'email.sent')`
  await until('the other', async () => next.received.length === 1)
  t.equal(receiver.received.length, 1)
  t.ok(next.received.every(isSignedWith(endpoint.secret)))
})
