import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import {
  anyJson,
  createLives,
  type LifeReceipt,
  messageOf,
  send,
  sendSms,
} from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint, eventsOf, inShort } from '../fixtures/webhooks.ts'

// Only the API runs: the test acts as the worker and the providers.
const database = await createDatabase()
const { url, sql } = database
const { base } = await startTestService(url, { roles: ['api'] })
const { call, start, finish, record } = createLives(database)

async function withEndpoint(): Promise<TestOrganisation> {
  const organisation = await createOrganisation(sql)
  await createEndpoint(sql, organisation)
  return organisation
}

/** Records a receipt of the network for a part. */
async function report(id: string, part: number, type: string) {
  const receipt = { provider: 'stand-in', network_ids: [`${id}.${part}`], phone: '+447700900000' }
  const receipts = [{ ...receipt, type, occurred_at: new Date().toISOString() }]
  await call('record_sms_receipts', { receipts: anyJson(receipts) })
}
const partsOf = (id: string, ...parts: number[]) =>
  parts.map((part) => ({ part, network_id: `${id}.${part}` }))

t.test(
  'emit_events: a sent email has one sent event, also if results or receipts repeat',
  async (t) => {
    const organisation = await withEndpoint()
    const id = await send(base, organisation)
    t.strictSame(await eventsOf(sql, organisation), [], 'no attempt was made')
    await start(id)
    await finish(id, 'ambiguous')
    await finish(id, 'deferred')
    t.strictSame(await eventsOf(sql, organisation), [], 'the message still waits')
    await start(id)
    await finish(id, 'sent')
    await finish(id, 'sent')
    await record(id, { type: 'sent' })
    t.strictSame(inShort(await eventsOf(sql, organisation)), ['email.sent sent'])
    const receipt = { type: 'delivered', provider_event_id: 'once' }
    await record(id, receipt, receipt)
    await record(id, receipt)
    await record(id, { type: 'delivered' })
    t.strictSame(inShort(await eventsOf(sql, organisation)), [
      'email.sent sent',
      'email.delivered delivered',
    ])
  },
)

t.test('emit_events: a receipt before the result of the attempt adds the sent event', async (t) => {
  for (const [receipts, expected] of [
    [[{ type: 'delivered' }], ['email.delivered delivered']],
    [[{ type: 'sent' }, { type: 'delivered' }], ['email.delivered delivered']],
    [[{ type: 'bounced', is_hard: true, recipient: 'gone@c.example' }], ['email.bounced bounced']],
    [[{ type: 'sent' }], []],
  ] as [LifeReceipt[], string[]][]) {
    const organisation = await withEndpoint()
    const [{ recipient: to }] = receipts as [LifeReceipt]
    const id = await send(base, organisation, to ? { to } : {})
    await start(id)
    await record(id, ...receipts)
    const events = await eventsOf(sql, organisation)
    t.strictSame(inShort(events), ['email.sent sent', ...expected])
    t.match(
      events[0]?.data,
      { sentAt: String, deliveredAt: null, error: null },
      'the state at that time',
    )
    await finish(id, 'sent')
    t.strictSame(await eventsOf(sql, organisation), events, 'the result adds no event')
  }
})

t.test('emit_events: receipts recorded together have one event each', async (t) => {
  const organisation = await withEndpoint()
  const id = await send(base, organisation, { to: ['b@c.example', 'd@c.example'] })
  await start(id)
  const hard = { type: 'bounced', is_hard: true, recipient: 'd@c.example', text: 'Gone.' }
  await record(id, { type: 'complained', recipient: 'b@c.example' }, hard)
  t.strictSame(inShort(await eventsOf(sql, organisation)), [
    'email.sent sent',
    'email.bounced complained',
    'email.complained complained',
  ])

  const other = await send(base, organisation, { to: 'e@c.example' })
  await start(other)
  await finish(other, 'sent')
  const recipient = 'e@c.example'
  await record(other, { type: 'complained', recipient }, { type: 'delivered', recipient })
  const events = await eventsOf(sql, organisation, other)
  t.strictSame(inShort(events), [
    'email.sent sent',
    'email.delivered delivered',
    'email.complained complained',
  ])
  t.match(events[1]?.data.deliveredAt, /^2\d{3}-/, 'the event has the time of delivery')
})

t.test('emit_events: a worse outcome has another event', async (t) => {
  const organisation = await withEndpoint()
  const to = ['1', '2', '3'].map((place) => `worse-${place}@c.example`)
  const id = await send(base, organisation, { to })
  await start(id)
  await finish(id, 'sent')
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  const ofRecipient = (place: number) => ({ recipient: to[place], occurred_at: at(-place) })
  await record(id, { type: 'failed', ...ofRecipient(0), text: 'No.' })
  await record(id, { type: 'bounced', ...ofRecipient(1), is_hard: false, text: 'Full.' })
  await record(id, { type: 'bounced', ...ofRecipient(2), is_hard: true, text: 'Gone.' })
  await record(id, { type: 'complained', ...ofRecipient(0) })
  const events = await eventsOf(sql, organisation)
  t.strictSame(
    events.map(({ type, data: { error } }) => [type, error?.code, error?.message].join(' ')).sort(),
    [
      'email.bounced hard_bounce worse-3@c.example: Gone.',
      'email.bounced soft_bounce worse-2@c.example: Full.',
      'email.complained hard_bounce worse-3@c.example: Gone.',
      'email.failed provider_rejected worse-1@c.example: No.',
      'email.sent  ',
    ],
  )
})

t.test('emit_events: a bounce after a complaint is a bounce, not another complaint', async (t) => {
  const organisation = await withEndpoint()
  const to = ['after-1@c.example', 'after-2@c.example']
  const id = await send(base, organisation, { to })
  await start(id)
  await finish(id, 'sent')
  await record(id, { type: 'complained', recipient: to[0] })
  await record(id, { type: 'bounced', is_hard: false, recipient: to[1] })
  await record(id, { type: 'complained', recipient: to[1] })
  t.strictSame(inShort(await eventsOf(sql, organisation)), [
    'email.sent sent',
    'email.complained complained',
    'email.bounced complained',
  ])
})

t.test(
  'emit_events: marketing email to several recipients is sent with its last copy',
  async (t) => {
    const organisation = await withEndpoint()
    const to = ['copy-1@c.example', 'copy-2@c.example', 'copy-3@c.example']
    const id = await send(base, organisation, { class: 'marketing', to })
    await start(id)
    await finish(id, 'deferred', { settled_recipients: [to[0]], refused: [] })
    await record(id, { type: 'delivered', recipient: to[0] })
    t.strictSame(await eventsOf(sql, organisation), [], 'other copies can still be sent')
    await start(id)
    const refused = [{ recipient: to[2], code: '550', text: 'No.' }]
    await finish(id, 'sent', { settled_recipients: to.slice(1), refused })
    const events = await eventsOf(sql, organisation)
    t.strictSame(inShort(events), ['email.sent sent', 'email.failed failed'])
    const message = 'copy-3@c.example: No.'
    t.strictSame(events[1]?.data.error, { code: 'provider_rejected', message })
  },
)

t.test('emit_events: an SMS of several parts has one sent and one delivered event', async (t) => {
  const organisation = await withEndpoint()
  const id = await sendSms(base, organisation, { body: 'x'.repeat(161) })
  await start(id)
  await finish(id, 'deferred', { parts: partsOf(id, 1) })
  await report(id, 1, 'delivered')
  t.strictSame(await eventsOf(sql, organisation), [])
  await start(id)
  await report(id, 2, 'delivered')
  await finish(id, 'sent', { parts: partsOf(id, 2) })
  t.strictSame(inShort(await eventsOf(sql, organisation)), [
    'sms.sent sent',
    'sms.delivered delivered',
  ])
})

t.test('emit_events: an SMS with a failed or expired part has a failed event', async (t) => {
  for (const [type, code] of [
    ['failed', 'network_rejected'],
    ['expired', 'expired'],
  ] as const) {
    const organisation = await withEndpoint()
    const id = await sendSms(base, organisation, { body: 'x'.repeat(161) })
    await start(id)
    await finish(id, 'sent', { parts: partsOf(id, 1, 2) })
    await report(id, 1, 'delivered')
    await report(id, 2, type)
    const events = await eventsOf(sql, organisation)
    t.strictSame(inShort(events), ['sms.sent sent', `sms.failed ${type}`])
    t.equal(events[1]?.data.error.code, code)
  }
})

t.test('emit_events: refused and rejected messages have a failed event', async (t) => {
  const organisation = await withEndpoint()
  const refused = await send(base, organisation)
  await start(refused)
  await finish(refused, 'failed', { code: '550', text: 'Never.' })
  const [event] = await eventsOf(sql, organisation, refused)
  t.match(event, {
    type: 'email.failed',
    data: {
      status: 'failed',
      error: { code: 'provider_rejected', message: 'Never.' },
      sentAt: null,
    },
  })

  const stopped = [
    await send(base, organisation),
    await sendSms(base, organisation, { class: 'marketing', body: 'Sale! Reply STOP to opt out' }),
  ]
  await sql`delete from app.domains where name = ${organisation.domain}`
  for (const id of stopped) await start(id)
  const events = await Promise.all(stopped.map((id) => eventsOf(sql, organisation, id)))
  t.match(events, [
    [
      {
        type: 'email.failed',
        data: { status: 'rejected', error: { code: 'domain_not_verified' } },
      },
    ],
    [{ type: 'sms.failed', data: { status: 'rejected', error: { code: 'consent_missing' } } }],
  ])
})

t.test('emit_events: an email that an operator retries has an event for each result', async (t) => {
  const organisation = await withEndpoint()
  const id = await send(base, organisation)
  for (const outcome of ['failed', 'failed', 'sent']) {
    await start(id)
    await finish(id, outcome)
    if (outcome === 'failed') await sql`select ops.retry_message(${id})`
  }
  t.strictSame(inShort(await eventsOf(sql, organisation)).sort(), [
    'email.failed failed',
    'email.failed failed',
    'email.sent sent',
  ])
})

t.test('emit_events: STOP has one event, an unsubscribe from email has none', async (t) => {
  const organisation = await withEndpoint()
  const number = '+27820000001'
  await sql`select ops.approve_sender(${organisation.id}, ${number})`
  const id = await sendSms(base, organisation, { senderId: number })
  await start(id)
  await finish(id, 'sent', { parts: partsOf(id, 1) })
  const said = { provider: 'stand-in', from: '+447700900000', to: number, word: 'STOP' }
  const stop = { ...said, keyword: 'stop', received_at: new Date().toISOString() }
  for (const messages of [[stop, stop], [stop]]) {
    await call('record_keywords', { messages: anyJson(messages) })
  }
  t.strictSame(inShort(await eventsOf(sql, organisation, id)), [
    'sms.sent sent',
    'sms.opted_out sent',
  ])

  const email = await send(base, organisation)
  await start(email)
  await finish(email, 'sent')
  await record(email, { type: 'opted_out' })
  t.strictSame(inShort(await eventsOf(sql, organisation, email)), ['email.sent sent'])
})

t.test('emit_events: sandbox messages have events like others', async (t) => {
  const organisation = await withEndpoint()
  const id = await send(base, organisation)
  await sql`update app.messages set is_sandbox = true where id = ${(await messageOf(sql, id)).id}`
  await start(id)
  await finish(id, 'sent')
  await record(id, { type: 'delivered' })
  t.strictSame(inShort(await eventsOf(sql, organisation)), [
    'email.sent sent',
    'email.delivered delivered',
  ])
})
