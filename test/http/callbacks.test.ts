import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import t from 'tap'
import { messageIdOf } from '../../src/providers/message-id.ts'
import { createDatabase } from '../fixtures/database.ts'
import { errorOf, get, isRefused, post, request, sendRaw } from '../fixtures/http.ts'
import {
  callbackOf,
  createReporter,
  deliveryStatus,
  failure,
  mailgunEvent,
  type SentMessage,
  sendAndHandOver,
  sign,
} from '../fixtures/mailgun.ts'
import { messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const provider = createReporter()
const { base, metricsAddress } = await startTestService(url, {
  roles: ['api', 'worker'],
  metricsPort: 0,
  createEmailProvider: () => provider,
})
const organisation = await createOrganisation(sql)
const address = `${base}/providers/mailgun/events`

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const [toMissing, toHere, toNoMore, ...stock] = (await sendAndHandOver(
  { base, sql },
  organisation,
  [
    { to: 'Missing@Example.com' },
    { to: ['here@example.com', 'jorg@bücher.example'] },
    { to: 'no-more@example.com' },
    ...Array.from({ length: 30 }, () => ({})),
  ],
)) as [SentMessage, SentMessage, SentMessage, ...SentMessage[]]

function aMessage(): SentMessage {
  const message = stock.pop()
  if (!message) throw new Error('the stock of messages is used up')
  return message
}

const delivered = ({ messageId }: SentMessage, more: Record<string, unknown> = {}) =>
  mailgunEvent('delivered', messageId, { 'delivery-status': deliveryStatus(250, 'OK'), ...more })

const bounced = ({ messageId }: SentMessage, recipient = 'gone@example.com') =>
  failure(
    'permanent',
    messageId,
    deliveryStatus(550, '5.1.1 There is no such mailbox.', { 'enhanced-code': '5.1.1' }),
    { recipient },
  )

const report = (body: unknown, headers?: Record<string, string>) =>
  post(address, null, body, headers)

/** Returns everything that a callback may change. */
async function everything() {
  const [row] = await sql<{ everything: unknown }[]>`
    select jsonb_build_object(
      'messages', (select jsonb_agg(to_jsonb(m) order by m.id) from app.messages m),
      'events', (select jsonb_agg(to_jsonb(e) order by e.message_id, e.id) from app.events e),
      'suppressions', (select jsonb_agg(to_jsonb(s) order by s.id) from app.suppressions s),
      'hard_bounces', (select jsonb_agg(to_jsonb(b) order by b.email) from app.hard_bounces b),
      'tokens', (select jsonb_agg(to_jsonb(c) order by c.token) from app.callback_tokens c)
    ) as everything`
  return row?.everything
}

t.test('a delivery is recorded and shown in the message', async (t) => {
  const message = aMessage()
  const response = await report(callbackOf(delivered(message)))
  t.match(response, { status: 200, json: { status: 'recorded' } })
  t.match(response.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
  t.equal(response.headers.get('x-ratelimit-limit'), null)
  t.match(await get(`${base}/v1/emails/${message.id}`, organisation.liveKey), {
    json: {
      status: 'delivered',
      deliveredAt: String,
      events: [
        { type: 'queued' },
        { type: 'sent' },
        {
          type: 'delivered',
          detail: { recipient: 'delivered@sandbox.postgram.test', code: '250', text: 'OK' },
        },
      ],
    },
  })
})

t.test('a bounce of a missing mailbox suppresses it for everyone', async (t) => {
  const message = toMissing
  await report(callbackOf(bounced(message, 'Missing@Example.com')))
  t.match(await messageOf(sql, message.id), {
    status: 'bounced',
    errorCode: 'hard_bounce',
    errorMessage: '5.1.1 There is no such mailbox.',
  })
  t.match(await sql`select email, message_id from app.hard_bounces where email like 'missing@%'`, [
    { email: 'missing@example.com', messageId: message.uuid },
  ])
})

t.test('a bounce for any other reason suppresses nothing', async (t) => {
  const message = toHere
  const status = deliveryStatus(550, 'Blocked', { 'enhanced-code': '5.7.1', 'bounce-type': 'hard' })
  const event = failure('permanent', message.messageId, status, { recipient: 'here@example.com' })
  await report(callbackOf(event))
  t.match(await messageOf(sql, message.id), { status: 'bounced', errorCode: 'soft_bounce' })
  t.same(await sql`select from app.hard_bounces where email = 'here@example.com'`, [])
  t.same(await sql`select from app.suppressions where email = 'here@example.com'`, [])
})

t.test('an unsubscribe at the provider suppresses marketing of that organisation', async (t) => {
  const message = toNoMore
  const event = mailgunEvent('unsubscribed', message.messageId, {
    recipient: 'no-more@example.com',
  })
  await report(callbackOf(event))
  t.match(await messageOf(sql, message.id), { status: 'sent' })
  t.match(await timelineOf(sql, message.id), [
    { type: 'queued' },
    { type: 'sent' },
    { type: 'opted_out', detail: { recipient: 'no-more@example.com' } },
  ])
  t.match(await sql`select * from app.suppressions where email = 'no-more@example.com'`, [
    { reason: 'unsubscribe', messageId: message.uuid },
  ])
})

t.test('a callback that names a recipient the email was not sent to is ignored', async (t) => {
  const message = aMessage()
  const before = await messageOf(sql, message.id)
  const victim = 'victim@example.com'
  for (const event of [
    bounced(message, victim),
    mailgunEvent('complained', message.messageId, { recipient: victim }),
    mailgunEvent('unsubscribed', message.messageId, { recipient: victim }),
    delivered(message, { recipient: victim }),
  ]) {
    t.match(await report(callbackOf(event)), { status: 200, json: { status: 'recorded' } })
  }
  t.same(await messageOf(sql, message.id), before)
  t.match(await timelineOf(sql, message.id), [{ type: 'queued' }, { type: 'sent' }])
  t.same(await sql`select from app.hard_bounces where email = ${victim}`, [])
  t.same(await sql`select from app.suppressions where email = ${victim}`, [])
  t.match(await sql`select provider, receipts, last_message from ops.stray_receipts`, [
    { provider: 'mailgun', receipts: '4', lastMessage: message.id },
  ])

  const ok = async () => (await sql`select ok from ops.checks where name = 'stray receipts'`)[0]?.ok
  t.equal(await ok(), true)
  await sql`update app.stray_receipts set receipts = 100`
  t.equal(await ok(), false)
  await sql`update app.stray_receipts set last_at = now() - interval '25 hours'`
  t.equal(await ok(), true)
})

t.test('a recipient matches in any case and in both forms of its domain', async (t) => {
  for (const recipient of ['HERE@example.COM', 'Jorg@Bücher.example']) {
    const event = delivered(toHere, { recipient })
    t.match(await report(callbackOf(event)), { status: 200, json: { status: 'recorded' } })
  }
  const recipients = (await timelineOf(sql, toHere.id))
    .filter(({ type }) => type === 'delivered')
    .map(({ detail }) => detail.recipient)
  t.same(recipients, ['here@example.com', 'jorg@xn--bcher-kva.example'])
})

t.test(
  'an email that the provider reports as accepted is sent, although its response was lost',
  async (t) => {
    provider.onSend = () => {
      throw new Error('the response was lost')
    }
    // An attempt before the callback neither finds nor sends the message.
    provider.onLookup = provider.onSend as never
    const id = await send(base, organisation)
    const { id: uuid } = await until('the attempt with the lost response', async () => {
      const message = await messageOf(sql, id)
      const deferrals = (await timelineOf(sql, id)).filter(({ type }) => type === 'deferred')
      return message.attemptStartedAt !== null && deferrals.length > 0 && message
    })
    const mailFromDomain = `mail.${organisation.domain}`
    const messageId = messageIdOf({ id: uuid, copy: null, mailFromDomain })
    await report(callbackOf(mailgunEvent('accepted', messageId)))
    t.match(await messageOf(sql, id), { status: 'sent', sentAt: Date })
    const types = (await timelineOf(sql, id)).map(({ type }) => type)
    t.same(types.slice(0, 3), ['queued', 'sent', 'deferred'])
    t.equal(provider.handed.filter((handed) => handed === uuid).length, 1)
    provider.onSend = () => ({ outcome: 'sent' })
    provider.onLookup = () => false
  },
)

t.test(
  'an irrelevant event or one of an unknown message gets 200 and changes nothing',
  async (t) => {
    const { tokens: _, ...before } = (await everything()) as Record<string, unknown>
    const unknown = 'em_01jz0000000000000000000000@mail.sender.example'
    for (const event of [
      mailgunEvent('opened', aMessage().messageId),
      mailgunEvent('delivered', unknown),
      mailgunEvent('delivered', '20180622182958.1.48906CB1@example.org'),
      {},
    ]) {
      t.match(await report(callbackOf(event)), { status: 200, json: { status: 'recorded' } })
    }
    const { tokens, ...after } = (await everything()) as Record<string, unknown>
    t.same(after, before)
    t.ok(tokens, 'their tokens are used up')
  },
)

t.test('a repeated callback changes nothing', async (t) => {
  const message = aMessage()
  const event = failure('temporary', message.messageId, deliveryStatus(451, 'Later'))
  const body = callbackOf(event)
  t.match(await report(body), { status: 200, json: { status: 'recorded' } })
  const before = await everything()
  t.match(await report(body), { status: 200, json: { status: 'repeated' } })
  t.same(await everything(), before)

  t.match(await report(callbackOf(event)), { status: 200 }, 'with a new signature')
  t.equal((await timelineOf(sql, message.id)).length, 3)
})

t.test('a callback that arrives many times at once is recorded once', async (t) => {
  const message = aMessage()
  const body = callbackOf(delivered(message))
  const responses = await Promise.all(Array.from({ length: 20 }, () => report(body)))
  t.ok(responses.every(({ status }) => status === 200))
  t.equal(responses.filter(({ json }) => json.status === 'recorded').length, 1)
  t.equal((await timelineOf(sql, message.id)).length, 3)
})

t.test('a callback that can never be valid gets 406 and changes nothing', async (t) => {
  const message = aMessage()
  const opened = sign()
  t.match(await report(callbackOf(mailgunEvent('opened', message.messageId), opened)), {
    status: 200,
  })
  const first = sign()
  const deferred = failure('temporary', message.messageId, deliveryStatus(451, 'Later'))
  t.match(await report(callbackOf(deferred, first)), { status: 200 })
  const before = await everything()

  const event = bounced(message)
  const signature = sign()
  const now = Date.now()
  const forgeries: [string, unknown, string][] = [
    ['a signature with another key', callbackOf(event, sign({ key: 'another' })), 'unreadable'],
    ['no signature', { 'event-data': event }, 'unreadable'],
    [
      'a signature for another token',
      callbackOf(event, { ...signature, token: 'a' }),
      'unreadable',
    ],
    [
      'a signature for another time',
      callbackOf(event, { ...signature, timestamp: String(Number(signature.timestamp) - 1) }),
      'unreadable',
    ],
    [
      'a signature in capitals',
      callbackOf(event, { ...signature, signature: signature.signature.toUpperCase() }),
      'unreadable',
    ],
    ['an empty signature', callbackOf(event, { ...signature, signature: '' }), 'unreadable'],
    [
      'a signature that is true',
      callbackOf(event, { ...signature, signature: true }),
      'unreadable',
    ],
    ['an empty body', '', 'unreadable'],
    ['half of a callback', callbackOf(event, signature).slice(0, -1), 'unreadable'],
    ['a callback without its beginning', callbackOf(event, signature).slice(1), 'unreadable'],
    ['a form', new URLSearchParams(signature).toString(), 'unreadable'],
    ['a list', [JSON.parse(callbackOf(event, signature))], 'unreadable'],
    ['no event', { signature }, 'unreadable'],
    ['a callback of yesterday', callbackOf(event, sign({ at: now - 24 * HOUR_MS })), 'stale'],
    [
      'a callback of 8 hours ago',
      callbackOf(event, sign({ at: now - 8 * HOUR_MS - MINUTE_MS })),
      'stale',
    ],
    ['a callback of the future', callbackOf(event, sign({ at: now + 6 * MINUTE_MS })), 'stale'],
    ['the signature of another event', callbackOf(event, first), 'replayed'],
    [
      'the signature of another message',
      callbackOf({ ...event, message: { headers: { 'message-id': aMessage().messageId } } }, first),
      'replayed',
    ],
    ['the signature of an event without meaning', callbackOf(event, opened), 'replayed'],
  ]
  for (const [what, body, reason] of forgeries) {
    t.match(await report(body), { status: 406, json: { status: reason } }, what)
  }
  t.same(await everything(), before)

  const taken = callbackOf({ ...deferred, event: 'complained' }, first)
  t.match(await report(taken), { status: 200, json: { status: 'repeated' } })
  t.same(await everything(), before, 'another event with the same ID changes nothing')
})

t.test('a callback is accepted for 8 hours, and if its clock is minutes ahead', async (t) => {
  for (const at of [-8 * HOUR_MS + MINUTE_MS, 4 * MINUTE_MS]) {
    const body = callbackOf(delivered(aMessage()), sign({ at: Date.now() + at }))
    t.match(await report(body), { status: 200, json: { status: 'recorded' } })
  }
})

t.test('a callback with too large a body gets 406', async (t) => {
  const before = await everything()
  const event = delivered(aMessage(), { tags: ['a'.repeat(1024 * 1024)] })
  const body = callbackOf(event)
  t.match(await report(body), { status: 406, json: { status: 'unreadable' } })

  const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024))
  const response = await fetch(address, {
    method: 'POST',
    body: packed,
    headers: { 'Content-Encoding': 'gzip' },
  })
  t.equal(response.status, 406, 'also one that is too large only after decompression')
  t.same(await everything(), before)

  const almost = callbackOf(delivered(aMessage(), { tags: ['a'.repeat(1000 * 1024)] }))
  t.match(await report(almost), { status: 200 })
})

t.test('the rest of too large a body is not parsed as a request', async (t) => {
  const head = `POST /providers/mailgun/events HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n`
  const { status, headers } = await sendRaw(base, head)
  t.equal(status, 406)
  t.equal(headers.get('connection'), 'close')
})

t.test('a callback is read with any content type', async (t) => {
  for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'x']) {
    const body = callbackOf(delivered(aMessage()))
    t.match(await report(body, { 'Content-Type': type }), { status: 200 }, type)
  }
})

t.test(
  'while the database cannot record a callback it gets 500, so that the provider retries',
  async (t) => {
    const message = aMessage()
    const body = callbackOf(delivered(message))
    await sql`revoke execute on function api.receive_callbacks from postgram_service`
    t.match(await report(body), { status: 500, json: { error: errorOf('internal_error') } })
    await sql`grant execute on function api.receive_callbacks to postgram_service`
    t.match(await messageOf(sql, message.id), { status: 'sent' })
    t.match(await report(body), { status: 200, json: { status: 'recorded' } })
    t.match(await messageOf(sql, message.id), { status: 'delivered' })
  },
)

t.test('callbacks exist only for the configured provider and only by POST', async (t) => {
  for (const [method, path] of [
    ['GET', '/providers/mailgun/events'],
    ['PUT', '/providers/mailgun/events'],
    ['POST', '/providers/sandbox/events'],
    ['POST', '/providers/mailgun'],
    ['POST', '/providers/mailgun/events/1'],
    ['POST', '/v1/providers/mailgun/events'],
  ] as const) {
    const body = method === 'GET' ? undefined : callbackOf(delivered(aMessage()))
    const response = await request(method, `${base}${path}`, null, body)
    isRefused(t, response, 'not_found', undefined, { name: `${method} ${path}`, hasKey: false })
  }
})

t.test('a provider without callbacks has no route for them', async (t) => {
  const sandbox = await startTestService(url, { roles: ['api'] })
  const body = callbackOf(delivered(aMessage()))
  for (const name of ['sandbox', 'mailgun']) {
    const response = await post(`${sandbox.base}/providers/${name}/events`, null, body)
    isRefused(t, response, 'not_found', undefined, { hasKey: false })
  }
})

t.test(
  'refused callbacks are logged once at once, and with their number at the stop',
  async (t) => {
    const lines: string[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
    const quiet = await startTestService(url, {
      roles: ['api'],
      createEmailProvider: () => createReporter(),
      log,
    })
    const before = lines.length
    const event = delivered(aMessage(), { recipient: 'secret@example.com' })
    for (let count = 0; count < 50; count++) {
      const body = callbackOf(event, sign({ key: 'secret' }))
      await post(`${quiet.base}/providers/mailgun/events`, null, body)
    }
    const body = callbackOf(event)
    t.match(await post(`${quiet.base}/providers/mailgun/events`, null, body), { status: 200 })
    const logged = () => lines.slice(before).map((line) => JSON.parse(line))
    const line = { level: 40, reason: 'unreadable' }
    t.match(logged(), [{ ...line, refused: 1 }])
    t.equal(logged().length, 1)
    await quiet.stop()
    t.match(logged(), [
      { ...line, refused: 1 },
      { ...line, refused: 49 },
    ])
    t.equal(logged().length, 2)
    t.notMatch(lines.slice(before).join(), /secret|em_|delivered/)
  },
)

t.test(
  'a recorded callback counts as a receipt in the metrics, a repeated or refused one does not',
  async (t) => {
    const counted = async () => {
      const { text } = await get(`${metricsAddress}/metrics`, null)
      return Number(
        /^postgram_receipts_total\{channel="email",type="delivered"\} (\d+)$/m.exec(text)?.[1],
      )
    }
    const before = await counted()
    const body = callbackOf(delivered(aMessage()))
    t.match(await report(body), { status: 200, json: { status: 'recorded' } })
    t.equal(await counted(), before + 1)
    t.match(await report(body), { status: 200, json: { status: 'repeated' } })
    t.match(await report(callbackOf(delivered(aMessage()), sign({ key: 'another' }))), {
      status: 406,
    })
    t.equal(await counted(), before + 1)
  },
)
