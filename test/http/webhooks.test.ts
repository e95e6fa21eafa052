import Stripe from 'stripe'
import t from 'tap'
import { seed } from '../../src/cli/demo.ts'
import { enums } from '../../src/db/api.gen.ts'
import { verifyEvent } from '../../src/webhooks/verify.js'
import { createDatabase } from '../fixtures/database.ts'
import { post } from '../fixtures/http.ts'
import { send, sendSms } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { makeProject, programsOf, readPage, startProgram } from '../fixtures/pages.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  bodiesOf,
  createEndpoint,
  type Received,
  type Receiver,
  startReceiver,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url)

const signatureOf = ({ headers }: Received) => String(headers['service-signature'])

/** The verification by our helper and by an independent library. */
const readers: Record<string, (received: Received, secret: string) => unknown> = {
  'our helper': (received, secrets) =>
    verifyEvent({ body: received.body, signature: signatureOf(received), secrets }),
  stripe: (received, secret) =>
    Stripe.webhooks.constructEvent(received.body, signatureOf(received), secret),
}

const arrivals = ({ received }: Receiver, count: number) =>
  until(`${count} events to arrive`, async () => received.length >= count && received)

t.test(
  'webhooks: all nine event types arrive and verify with our helper and with stripe',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const receiver = await startReceiver()
    const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
    const another = await createEndpoint(sql, await createOrganisation(sql), { url: receiver.url })

    const emails = { delivered: 2, bounce: 2, complaint: 3, reject: 1 }
    for (const name of Object.keys(emails)) {
      const to = `${name}+webhooks@sandbox.postgram.test`
      await send(base, organisation, { to, subject: 'Grüße – 你好 💌' })
    }
    // One that is delivered and replied to with STOP, and one that the network refuses.
    const numbers = { '+447700900136': 3, '+447700900133': 1 }
    for (const to of Object.keys(numbers)) await sendSms(base, organisation, { to })
    const counts = [...Object.values(emails), ...Object.values(numbers)]
    const received = await arrivals(
      receiver,
      counts.reduce((sum, count) => sum + count),
    )

    const events = received.map((one) => {
      const [ours, theirs] = Object.values(readers).map((read) => read(one, endpoint.secret))
      t.strictSame(ours, theirs)
      for (const [name, read] of Object.entries(readers)) {
        t.throws(() => read(one, another.secret), `${name} refuses another endpoint's secret`)
        const altered = { ...one, body: Buffer.concat([one.body, Buffer.from(' ')]) }
        t.throws(() => read(altered, endpoint.secret), `${name} refuses an altered body`)
      }
      const event = verifyEvent({
        body: one.body,
        signature: signatureOf(one),
        secrets: endpoint.secret,
      })
      t.equal(one.headers['service-event-id'], event.id)
      return event
    })
    t.strictSame(
      [...new Set(events.map(({ type }) => type))].sort(),
      [...enums.webhook_event_type].sort(),
    )
    t.strictSame(
      received.map(({ body }) => body.toString()).sort(),
      (await bodiesOf(sql, organisation)).sort(),
      'each event arrives once, with the recorded bytes',
    )
  },
)

t.test('webhooks: for a day after a rotation both secrets verify', async (t) => {
  const organisation = await createOrganisation(sql)
  const receiver = await startReceiver()
  const { id, secret: old } = await createEndpoint(sql, organisation, { url: receiver.url })
  const rotated = await sql<{ secret: string }[]>`select ops.rotate_webhook_secret(${id}) as secret`
  const recent = String(rotated[0]?.secret)
  t.not(recent, old)

  await sql`select ops.send_test_event(${id}, 'email.bounced')`
  const [both] = await arrivals(receiver, 1)
  if (!both) throw new Error('nothing arrived')
  t.match(signatureOf(both), /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
  for (const [name, read] of Object.entries(readers)) {
    t.match(read(both, old), { type: 'email.bounced' }, `${name}, the old one`)
    t.match(read(both, recent), { type: 'email.bounced' }, `${name}, the new one`)
  }

  await sql`update app.webhook_endpoints set old_secret_until = now() where old_secret is not null`
  await sql`select ops.send_test_event(${id}, 'sms.opted_out')`
  const [, one] = await arrivals(receiver, 2)
  if (!one) throw new Error('nothing more arrived')
  for (const [name, read] of Object.entries(readers)) {
    t.match(read(one, recent), { type: 'sms.opted_out' })
    t.throws(() => read(one, old), `${name} after that day`)
  }
})

const { blocks } = await readPage('webhooks')

/** Returns the first such part of the page as plain text. */
function shown(pattern: RegExp): string {
  for (const { text } of blocks) {
    const [, found] = pattern.exec(text) ?? []
    if (found !== undefined) return found
  }
  throw new Error(`the page shows no ${pattern}`)
}

t.test('webhooks page: the first example works unchanged', async (t) => {
  const { liveKey } = await seed(sql)
  const statement = shown(/npm run sql -- "(select \* from ops\.create_webhook_endpoint[^"]+)"/)
  t.match(statement, "'http://127.0.0.1:4000/'")
  const [endpoint] = await sql.unsafe<{ id: string; secret: string }[]>(statement)
  if (!endpoint) throw new Error('no endpoint was made')

  const folder = await makeProject(await programsOf('webhooks'))
  const runner = {
    file: 'receiver.mjs',
    command: () => [process.execPath, 'receiver.mjs'],
    asks: [],
  }
  const { url, lines } = await startProgram(t, folder, runner, endpoint.secret)
  // The example has a fixed port, which may be in use.
  await sql`select ops.set_webhook_endpoint(${endpoint.id}, ${url})`

  const body = shown(/\/v1\/emails -H 'Authorization: Bearer sk_live_…' \\\n +-d '([^']+)'/)
  t.equal((await post(`${base}/v1/emails`, liveKey, body)).status, 200)
  await until('two events', async () => lines().length === 2)
  const printed = blocks.find(({ introduction }) => introduction.startsWith('The receiver prints'))
  t.strictSame(lines().sort(), printed?.text.split('\n').sort())
})

t.test('webhooks page: the example event has the form of a real one', async (t) => {
  const organisation = await createOrganisation(sql)
  await createEndpoint(sql, organisation, { types: ['email.bounced'] })
  await send(base, organisation, { to: 'bounce+form@sandbox.postgram.test' })
  const bodies = await until('its event', async () => {
    const bodies = await bodiesOf(sql, organisation)
    return bodies.length > 0 && bodies
  })
  const real = JSON.parse(bodies[0] ?? '')
  const example = JSON.parse(
    blocks.find(({ attributes }) => attributes.id === 'example')?.text ?? '',
  )
  const formOf = (value: unknown): unknown => {
    if (Array.isArray(value)) return 'list'
    if (typeof value !== 'object' || value === null) return value === null ? null : typeof value
    return Object.entries(value).map(([key, inside]) => [key, formOf(inside)])
  }
  t.strictSame(formOf(example), formOf(real))
  const pattern = (id: string) => id.replace(/_[0-7][0-9a-hjkmnp-tv-z]{25}$/, '')
  t.strictSame([pattern(example.id), pattern(example.data.id)], ['evt', 'em'])
})
