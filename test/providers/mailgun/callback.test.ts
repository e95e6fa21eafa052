import { createHmac } from 'node:crypto'
import t from 'tap'
import { createCallbackReader, receiptOf } from '../../../src/providers/mailgun/callback.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import {
  callbackOf,
  deliveryStatus,
  failure,
  mailgunEvent,
  SIGNING_KEY,
  sign,
} from '../../fixtures/mailgun.ts'

const id = '01890000-0000-7000-8000-0123456789ab'
const messageId = messageIdOf({ id, copy: null, mailFromDomain: 'mail.sender.example' })
const read = createCallbackReader(SIGNING_KEY)

const delivered = () =>
  mailgunEvent('delivered', messageId, { 'delivery-status': deliveryStatus(250, 'OK') })

t.test('readCallback(): returns the receipt and the token of the signature', async (t) => {
  const event = delivered()
  const signature = sign({ at: 1_760_000_000_000, token: 'a'.repeat(50) })
  t.same(read(callbackOf(event, signature)), {
    token: 'a'.repeat(50),
    signedAt: 1_760_000_000,
    receipt: receiptOf(event),
  })
})

t.test('readCallback(): the signature is HMAC-SHA256 of time and token in hex', async (t) => {
  // Computed with openssl, apart from the code that makes the tests' signatures.
  const signature = {
    timestamp: '1529006854',
    token: 'a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0',
    signature: '65be5122d97bd43cfbbe63dbee50bb09553975941cfabe1aa8dbf0b57109cf08',
  }
  t.match(createCallbackReader('key-of-an-example')(callbackOf(delivered(), signature)), {
    signedAt: 1_529_006_854,
  })
})

const good = sign()
const { timestamp, token, signature } = good
const signed = (time: string, word: string) => ({
  timestamp: time,
  token: word,
  signature: createHmac('sha256', SIGNING_KEY)
    .update(time + word)
    .digest('hex'),
})

const notCallbacks: Record<string, string> = {
  'an empty body': '',
  'no JSON': 'event=delivered',
  'half of a callback': callbackOf(delivered()).slice(0, -1),
  null: 'null',
  'an array': '[]',
  'a string': '"signature"',
  'JSON nested without end': '['.repeat(500_000),
  'no signature': JSON.stringify({ 'event-data': delivered() }),
  'a signature that is no object': callbackOf(delivered(), signature),
  'no time': callbackOf(delivered(), { token, signature }),
  'a time that is no string': callbackOf(delivered(), { ...good, timestamp: Number(timestamp) }),
  'a time with digits of the token': callbackOf(delivered(), {
    ...signed(timestamp, '7abc'),
    timestamp: `${timestamp}7`,
    token: 'abc',
  }),
  'a token with digits of the time': callbackOf(delivered(), {
    ...signed(timestamp, 'abc'),
    timestamp: timestamp.slice(0, -1),
    token: `${timestamp.slice(-1)}abc`,
  }),
  'a time in words': callbackOf(delivered(), signed('now', token)),
  'a time with a sign': callbackOf(delivered(), signed(`-${timestamp.slice(1)}`, token)),
  'no token': callbackOf(delivered(), { timestamp, signature }),
  'an empty token': callbackOf(delivered(), signed(timestamp, '')),
  'a token without end': callbackOf(delivered(), signed(timestamp, 'a'.repeat(201))),
  'a token that cannot be stored': callbackOf(delivered(), signed(timestamp, 'a\0b')),
  'no signature of the signature': callbackOf(delivered(), { timestamp, token }),
  'a signature that is a number': callbackOf(delivered(), { ...good, signature: 7 }),
  'a signature that is null': callbackOf(delivered(), { ...good, signature: null }),
  'a signature that is a list': callbackOf(delivered(), { ...good, signature: [signature] }),
  'an empty signature': callbackOf(delivered(), { ...good, signature: '' }),
  'a signature too short': callbackOf(delivered(), { ...good, signature: signature.slice(1) }),
  'a signature too long': callbackOf(delivered(), { ...good, signature: `${signature}0` }),
  'a signature in capitals': callbackOf(delivered(), {
    ...signed(timestamp, 'abc'),
    signature: signed(timestamp, 'abc').signature.toUpperCase(),
  }),
  'a signature with one digit changed': callbackOf(delivered(), {
    ...good,
    signature: signature.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
  }),
  'a signature with letters that are not ASCII': callbackOf(delivered(), {
    ...good,
    signature: 'é'.repeat(32),
  }),
  "another's signature": callbackOf(delivered(), sign({ key: 'another key' })),
  'the signature of another token': callbackOf(delivered(), { ...good, token: sign().token }),
  'the signature of another time': callbackOf(delivered(), {
    ...good,
    timestamp: String(Number(timestamp) + 1),
  }),
  'no event': JSON.stringify({ signature: good }),
  'an event that is null': callbackOf(null),
  'an event that is a string': callbackOf('delivered'),
}

for (const [what, body] of Object.entries(notCallbacks)) {
  t.test(`readCallback(): ${what} is refused`, async (t) => {
    t.equal(read(body), undefined)
  })
}

const base = {
  message_id: id,
  provider_event_id: 'mailgun:e1',
  occurred_at: '2025-10-09T08:53:20.750Z',
  recipient: 'delivered@sandbox.postgram.test',
}
const common = { id: 'e1', timestamp: 1_760_000_000.7502 }
const event = (name: string, more: Record<string, unknown> = {}) =>
  mailgunEvent(name, messageId, { ...common, ...more })
const permanent = (status: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  failure('permanent', messageId, status, { ...common, ...more })
const temporary = (status: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  failure('temporary', messageId, status, { ...common, ...more })

const NO_ACCOUNT = 'The email account that you tried to reach does not exist.'

/** Each row of the mapping: an event, and its receipt without message, id, time and recipient. */
const mapping: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ['accepted', event('accepted', { method: 'http' }), { type: 'sent' }],
  [
    'delivered',
    event('delivered', { 'delivery-status': deliveryStatus(250, 'OK') }),
    { type: 'delivered', code: '250', text: 'OK' },
  ],
  [
    'failed for now',
    temporary(
      deliveryStatus(
        451,
        '4.7.652 The mail server has exceeded the maximum number of connections.',
        {
          'enhanced-code': '4.7.652',
          'retry-seconds': 600,
        },
      ),
    ),
    {
      type: 'deferred',
      code: '451 4.7.652',
      text: '4.7.652 The mail server has exceeded the maximum number of connections.',
    },
  ],
  [
    'failed for now, with a code that is hard otherwise',
    temporary(deliveryStatus(550, NO_ACCOUNT, { 'enhanced-code': '5.1.1' })),
    { type: 'deferred', code: '550 5.1.1', text: NO_ACCOUNT },
  ],
  [
    'stopped as too old, whatever its severity',
    temporary(deliveryStatus(498, '', { description: 'No MX for example.com' }), { reason: 'old' }),
    { type: 'bounced', is_hard: false, code: '498', text: 'No MX for example.com' },
  ],
  [
    'too old',
    permanent(deliveryStatus(602, 'Too old'), { reason: 'old' }),
    { type: 'bounced', is_hard: false, code: '602', text: 'Too old' },
  ],
  [
    'no such mailbox, by the enhanced code',
    permanent(deliveryStatus(550, NO_ACCOUNT, { 'enhanced-code': '5.1.1' })),
    { type: 'bounced', is_hard: true, code: '550 5.1.1', text: NO_ACCOUNT },
  ],
  [
    'no such mailbox, as Exchange says it',
    permanent(
      deliveryStatus(550, '5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found', {
        'enhanced-code': '5.1.10',
        'bounce-type': 'hard',
      }),
    ),
    { type: 'bounced', is_hard: true, code: '550 5.1.10' },
  ],
  [
    'no such mailbox, by the words',
    permanent(deliveryStatus(550, `5.1.1 ${NO_ACCOUNT}`)),
    { type: 'bounced', is_hard: true, code: '550' },
  ],
  [
    'no such mailbox, by the words behind a code',
    permanent(deliveryStatus(550, `550-5.1.1 ${NO_ACCOUNT}`)),
    { type: 'bounced', is_hard: true },
  ],
  [
    'no such mailbox, by the description',
    permanent(deliveryStatus(550, '', { description: `550 5.1.1 ${NO_ACCOUNT}` })),
    { type: 'bounced', is_hard: true, text: `550 5.1.1 ${NO_ACCOUNT}` },
  ],
  [
    'no such mailbox, by the reason',
    permanent(deliveryStatus(550, 'No'), { reason: '5.1.1' }),
    { type: 'bounced', is_hard: true },
  ],
  [
    'a bounce that came by mail later',
    permanent(
      {
        'bounce-code': '5.1.1',
        code: 550,
        message: `smtp; 550-5.1.1 ${NO_ACCOUNT}`,
        description: 'Your message could not be delivered.',
        'enhanced-code': '5.1.1',
      },
      { reason: 'generic', flags: { 'is-delayed-bounce': true }, envelope: {} },
    ),
    { type: 'bounced', is_hard: true, code: '550 5.1.1', text: `smtp; 550-5.1.1 ${NO_ACCOUNT}` },
  ],
  [
    'a bounce by mail, by its words alone',
    permanent({ code: 550, message: `smtp; 550-5.1.1 ${NO_ACCOUNT}` }),
    { type: 'bounced', is_hard: true },
  ],
  [
    'a bounce by mail, by its own code alone',
    permanent({ 'bounce-code': '5.1.1', code: 550, message: 'smtp; 550 unknown' }),
    { type: 'bounced', is_hard: true },
  ],
  [
    'a bounce by mail that says nothing sure',
    permanent({ 'bounce-code': '5.0.0', code: 550, message: 'smtp; 550 Address unknown' }),
    { type: 'bounced', is_hard: false },
  ],
  [
    'a policy',
    permanent(
      deliveryStatus(550, '5.7.1 Service unavailable; client host blocked', {
        'enhanced-code': '5.7.1',
        'bounce-type': 'hard',
      }),
    ),
    { type: 'bounced', is_hard: false, code: '550 5.7.1' },
  ],
  [
    'a policy whose words speak of mailboxes',
    permanent(deliveryStatus(550, `5.1.1 ${NO_ACCOUNT}`, { 'enhanced-code': '5.7.606' })),
    { type: 'bounced', is_hard: false },
  ],
  [
    'a full mailbox',
    permanent(deliveryStatus(552, '5.2.2 The mailbox is full', { 'enhanced-code': '5.2.2' })),
    { type: 'bounced', is_hard: false },
  ],
  [
    'a code that only begins like one',
    permanent(deliveryStatus(550, '5.1.17 Something else')),
    { type: 'bounced', is_hard: false },
  ],
  [
    'a code in the middle of a sentence',
    permanent(deliveryStatus(550, 'See https://example.com/5.1.1')),
    { type: 'bounced', is_hard: false },
  ],
  [
    'refused without any code',
    permanent(deliveryStatus(550, 'No')),
    { type: 'bounced', is_hard: false, code: '550', text: 'No' },
  ],
  ...(
    [
      [605, 'suppress-bounce', 'Not delivering to previously bounced address'],
      [606, 'suppress-unsubscribe', 'Not delivering to unsubscribed address'],
      [607, 'suppress-complaint', 'Not delivering to a user who marked your messages as spam'],
    ] as const
  ).map(
    ([code, reason, description]) =>
      [
        `what Mailgun itself holds back, ${reason}`,
        permanent(deliveryStatus(code, '', { description, 'enhanced-code': '5.1.1' }), { reason }),
        { type: 'bounced', is_hard: false, code: `${code} 5.1.1`, text: description },
      ] as [string, Record<string, unknown>, Record<string, unknown>],
  ),
  [
    'what Mailgun itself holds back, by the code alone',
    permanent(deliveryStatus(605, '5.1.1 Not delivering to previously bounced address')),
    { type: 'bounced', is_hard: false },
  ],
  ['complained', event('complained', { 'log-level': 'warn' }), { type: 'complained' }],
  ['unsubscribed', event('unsubscribed', { ip: '192.0.2.7' }), { type: 'opted_out' }],
]

for (const [what, given, expected] of mapping) {
  t.test(`receiptOf(): ${what} is ${expected.type}`, async (t) => {
    const receipt = receiptOf(given)
    t.match(receipt, { ...base, ...expected })
    t.equal('is_hard' in (receipt ?? {}), expected.type === 'bounced')
    for (const field of ['code', 'text']) {
      if (given['delivery-status'] === undefined) t.notOk(field in (receipt ?? {}))
    }
    t.same(read(callbackOf(given))?.receipt, receipt, 'also in a callback')
  })
}

t.test('receiptOf(): a rejected email is failed for all its recipients', async (t) => {
  const { recipient: _, ...rejected } = event('rejected', {
    reject: { reason: 'The domain is not allowed to send.', description: '' },
  })
  t.same(receiptOf(rejected), {
    message_id: id,
    provider_event_id: 'mailgun:e1',
    occurred_at: base.occurred_at,
    type: 'failed',
    text: 'The domain is not allowed to send.',
  })
})

const meaningless: Record<string, unknown> = {
  'an opening': event('opened', { ip: '192.0.2.7', geolocation: { country: 'ZA' } }),
  'a click': event('clicked', { url: 'https://example.com' }),
  'stored mail': event('stored'),
  'an event to come': event('delayed_forever'),
  'an event with the name of a method': event('constructor'),
  'a failure without severity': event('failed', { 'delivery-status': deliveryStatus(550, 'No') }),
  'a failure with the name of a method': event('failed', { severity: 'constructor' }),
  'an event without message': { ...event('delivered'), message: undefined },
  'a message without headers': event('delivered', { message: {} }),
  'a message without Message-ID': event('delivered', {
    message: { headers: { to: 'a@b.example' } },
  }),
  'mail of somebody else': mailgunEvent('delivered', '20180622182958.1.48906CB1@example.org'),
  'mail with an SMS id': mailgunEvent('delivered', messageId.replace('em_', 'sm_')),
  'mail that a route passed on': event('delivered', { flags: { 'is-routed': true } }),
  'no id': { ...event('delivered'), id: undefined },
  'an id without end': event('delivered', { id: 'a'.repeat(201) }),
  'an id that cannot be stored': event('delivered', { id: 'a\0' }),
  'no time': { ...event('delivered'), timestamp: undefined },
  'a time before all time': event('delivered', { timestamp: -1 }),
  'a time after all time': event('delivered', { timestamp: 1e20 }),
  'a time in words': event('delivered', { timestamp: 'Thu, 09 Oct 2025 08:53:20 GMT' }),
  'a recipient without end': event('delivered', { recipient: `${'a'.repeat(250)}@b.example` }),
  'a recipient that is none': event('delivered', { recipient: 'someone' }),
  'a recipient that cannot be stored': event('delivered', { recipient: 'a\0@b.example' }),
  'a recipient with half a character': event('delivered', { recipient: 'a\ud800@b.example' }),
  'an empty event': {},
  'a list': [],
  null: null,
  undefined: undefined,
  'a string': 'delivered',
}

for (const [what, given] of Object.entries(meaningless)) {
  t.test(`receiptOf(): ${what} is null`, async (t) => {
    t.equal(receiptOf(given), null)
  })
}

t.test('readCallback(): a valid callback with an ignored event has a null receipt', async (t) => {
  const { token, ...rest } = sign()
  t.match(read(callbackOf(event('opened'), { token, ...rest })), { token, receipt: null })
})

t.test('receiptOf(): reads the Message-ID of a copy with or without brackets', async (t) => {
  for (const copy of [null, 1, 50]) {
    const ours = messageIdOf({ id, copy, mailFromDomain: 'mail.sender.example' })
    for (const text of [ours, `<${ours}>`]) {
      t.match(receiptOf(mailgunEvent('delivered', text)), { message_id: id })
    }
  }
})

t.test('receiptOf(): recipients are in lower case', async (t) => {
  t.match(receiptOf(event('delivered', { recipient: 'Some.One@EXAMPLE.com' })), {
    recipient: 'some.one@example.com',
  })
})

t.test('receiptOf(): texts are bounded and can be stored', async (t) => {
  const receipt = receiptOf(
    permanent(
      deliveryStatus(550, `a\0b\ud800${'😀'.repeat(2000)}`, { 'enhanced-code': 'x'.repeat(80) }),
    ),
  )
  t.equal(receipt?.text?.length, 1000)
  t.ok(receipt?.text?.startsWith('a\uFFFDb\uFFFD😀'))
  t.ok(receipt?.text?.isWellFormed())
  t.equal(receipt?.code?.length, 50)
})

t.test('receiptOf(): malformed optional fields are ignored', async (t) => {
  for (const status of [null, 7, 'OK', [], { code: {}, message: [], description: null }]) {
    t.match(receiptOf(event('delivered', { 'delivery-status': status })), {
      ...base,
      type: 'delivered',
      code: undefined,
      text: undefined,
    })
  }
  const odd = { reject: 'no', flags: null, severity: 9, reason: null, tags: 'a' }
  t.match(receiptOf(event('delivered', odd)), { type: 'delivered' })
  t.match(receiptOf(event('delivered', { 'delivery-status': { code: '250', message: 7 } })), {
    code: '250',
    text: '7',
  })
})
