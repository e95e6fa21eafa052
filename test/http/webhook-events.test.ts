import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, get, post } from '../fixtures/http.ts'
import { bringForward, send, sendSms } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { messageFields } from '../fixtures/pages.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  bodiesOf,
  createEndpoint,
  eventsOf,
  inShort,
  startReceiver,
  type WebhookEvent,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url)

const AT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const keys = { email: await messageFields('email'), sms: await messageFields('sms') }

const emailTo = (organisation: TestOrganisation, name: string) =>
  send(base, organisation, { to: `${name}@sandbox.postgram.test`, tags: ['a', 'b'] })
const smsTo = (organisation: TestOrganisation, digit: number) =>
  sendSms(base, organisation, { to: `+44770090012${digit}`, body: 'x'.repeat(161) })

/** Sends to the addresses and numbers of the sandbox; returns each message's ID with its expected events. */
async function sendOneOfEach(organisation: TestOrganisation) {
  const expected = new Map<string, string[]>()
  const expect = async (id: Promise<string>, ...types: string[]) => expected.set(await id, types)
  await expect(
    emailTo(organisation, 'delivered'),
    ...['email.sent sent', 'email.delivered delivered'],
  )
  await expect(emailTo(organisation, 'bounce+1'), 'email.sent sent', 'email.bounced bounced')
  await expect(emailTo(organisation, 'softbounce'), 'email.sent sent', 'email.bounced bounced')
  await expect(
    emailTo(organisation, 'complaint+1'),
    ...['email.sent sent', 'email.delivered delivered', 'email.complained complained'],
  )
  await expect(emailTo(organisation, 'reject'), 'email.failed failed')
  await expect(smsTo(organisation, 0), 'sms.sent sent', 'sms.delivered delivered')
  await expect(smsTo(organisation, 1), 'sms.sent sent', 'sms.failed failed')
  await expect(smsTo(organisation, 2), 'sms.sent sent', 'sms.failed expired')
  await expect(smsTo(organisation, 3), 'sms.failed failed')
  await expect(
    smsTo(organisation, 6),
    ...['sms.sent sent', 'sms.delivered delivered', 'sms.opted_out delivered'],
  )
  await expect(
    sendSms(base, organisation, { class: 'marketing', body: 'Sale! Reply STOP to opt out' }),
    'sms.failed rejected',
  )
  return expected
}

t.test('webhook events: all nine types have the form of the API reference', async (t) => {
  const organisation = await createOrganisation(sql)
  const receiver = await startReceiver()
  await createEndpoint(sql, organisation, { url: receiver.url })
  // A phone may reply before it is recorded that the network accepted the message.
  await sql`revoke execute on function api.sandbox_report from postgram_service`
  const expected = await sendOneOfEach(organisation)
  await until('all to be sent', async () => {
    const waiting = await sql`select from app.messages where status = 'queued'`
    return waiting.length === 0
  })
  await sql`grant execute on function api.sandbox_report to postgram_service`
  const count = [...expected.values()].flat().length
  await until(`${count} events`, async () => receiver.received.length >= count)
  const bodies = await bodiesOf(sql, organisation)
  t.strictSame(
    receiver.received.map(({ body }) => body.toString()).sort(),
    bodies.toSorted(),
    'each event arrives once, with the recorded bytes',
  )
  for (const { headers, body } of receiver.received) {
    t.equal(headers['service-event-id'], JSON.parse(body.toString()).id)
  }
  const events = bodies.map((body): WebhookEvent => JSON.parse(body))

  t.strictSame(
    [...new Set(events.map(({ type }) => type))].sort(),
    [...enums.webhook_event_type].sort(),
  )
  for (const [id, types] of expected) {
    t.strictSame(inShort(events.filter(({ data }) => data.id === id)), types)
  }
  for (const event of events) {
    const { id, type, occurredAt, data } = event
    t.strictSame(Object.keys(event), ['id', 'type', 'occurredAt', 'data'])
    t.match(id, /^evt_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    t.match(occurredAt, AT)
    t.match(data.createdAt, AT)
    const channel = type.split('.')[0] ?? ''
    t.strictSame(Object.keys(data), channel === 'email' ? keys.email : keys.sms)
    t.equal(data.channel, channel)
    if (type.endsWith('.sent')) t.match(data, { sentAt: AT, deliveredAt: null, error: null })
    if (type.endsWith('.delivered')) t.match(data, { deliveredAt: AT, error: null })
    if (type.endsWith('.bounced') || type.endsWith('.failed')) {
      t.strictSame(Object.keys(data.error), ['code', 'message'])
    }
  }
  for (const id of expected.keys()) {
    const path = id.startsWith('em_') ? 'emails' : 'sms'
    const { json } = await get(`${base}/v1/${path}/${id}`, organisation.liveKey)
    const { events: _, ...message } = json
    const last = events.findLast(({ data }) => data.id === id)
    t.strictSame(last?.data, message, 'the last event has the message as GET returns it')
  }
})

t.test('webhook events: a scheduled SMS has scheduledAt', async (t) => {
  const organisation = await createOrganisation(sql)
  await createEndpoint(sql, organisation, { types: ['sms.delivered'] })
  const inAMinute = new Date(Date.now() + 60_000)
  const body = 'x'.repeat(161)
  const id = await sendSms(base, organisation, { scheduledAt: inAMinute, body })
  const scheduledAt = await bringForward(sql, id)
  const [event] = await until('its delivery', async () => {
    const events = await eventsOf(sql, organisation)
    return events.length > 0 && events
  })
  t.match(event, { type: 'sms.delivered', data: { id, scheduledAt, segments: 2, credits: 0 } })
})

t.test('webhook events: test messages have none', async (t) => {
  const organisation = await createOrganisation(sql)
  const { testKey, domain } = organisation
  await createEndpoint(sql, organisation)
  for (const name of ['delivered', 'bounce', 'complaint', 'reject']) {
    const email = anEmail(domain, { to: `${name}@sandbox.postgram.test` })
    t.equal((await post(`${base}/v1/emails`, testKey, email)).status, 200)
  }
  for (const sms of [anSms(), anSms({ to: '+447700900126' }), anSms({ class: 'marketing' })]) {
    t.equal((await post(`${base}/v1/sms`, testKey, sms)).status, 200)
  }
  const id = await emailTo(organisation, 'delivered')
  await until('the events of a live one', async () => {
    const events = await eventsOf(sql, organisation, id)
    return events.length === 2
  })
  t.equal((await eventsOf(sql, organisation)).length, 2)
})
