import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Fields } from '../../src/errors.ts'
import { parseSms } from '../../src/schemas/sms.ts'
import { segmentsOf } from '../../src/sms/segments.ts'

const plain = { to: '+27821234567', body: 'Hi', class: 'transactional' }

const smsOf = (body: unknown) => {
  const parsed = parseSms(body)
  if ('fields' in parsed) throw new Error(JSON.stringify(parsed.fields))
  return parsed.value
}
const fieldsOf = (body: unknown): Fields | null => {
  const parsed = parseSms(body)
  return 'fields' in parsed ? parsed.fields : null
}

const PHONE = 'must be a phone number in E.164, as +27821234567'
const SENDER =
  'must be 1 to 11 letters, digits and spaces with at least one letter, or a phone number in E.164'
const CLASS = 'must be transactional or marketing'

t.test('parseSms(): returns an ordinary SMS in the form that SQL takes', async (t) => {
  t.strictSame(smsOf(plain), {
    class: 'transactional',
    sender_id: null,
    recipient: '+27821234567',
    body: 'Hi',
    segments: 1,
    scheduled_at: null,
    tags: [],
  })
})

t.test('parseSms(): returns every field', async (t) => {
  const body = `Grüße ${'ж'.repeat(100)} 💌`
  t.strictSame(
    smsOf({
      to: '+447700900001',
      body,
      class: 'marketing',
      senderId: 'Acme Shop 1',
      scheduledAt: '2026-07-01T09:00:00+02:00',
      tags: ['a', 'b'],
    }),
    {
      class: 'marketing',
      sender_id: 'Acme Shop 1',
      recipient: '+447700900001',
      body,
      segments: 2,
      scheduled_at: '2026-07-01T07:00:00.000Z',
      tags: ['a', 'b'],
    },
  )
})

t.test('parseSms(): accepts values on the limit of each rule, unchanged', async (t) => {
  const values: Record<string, unknown[]> = {
    to: ['+1234567', '+123456789012345', '+27000000000', '+270821234567'],
    body: [
      ...[' ', '\n', 'x', '€'.repeat(760), '💌'.repeat(330), 'line\r\nline\ttab \x1b'],
      ...['x'.repeat(1530), 'ж'.repeat(670)],
    ],
    class: ['transactional', 'marketing'],
    senderId: ['A', '0000000000a', 'Acme Co', ' a ', 'ACME 24 7 x', '+1234567', '+123456789012345'],
    tags: [[], Array.from({ length: 10 }, () => '💌'.repeat(64))],
  }
  const names: Record<string, string> = { to: 'recipient', senderId: 'sender_id' }
  for (const [field, all] of Object.entries(values)) {
    for (const value of all) {
      const sms = smsOf({ ...plain, [field]: value })
      t.strictSame(sms[(names[field] ?? field) as keyof typeof sms], value, `${field}: ${value}`)
    }
  }
})

t.test('null in an optional field is the same as no field', async (t) => {
  t.strictSame(smsOf({ ...plain, senderId: null, scheduledAt: null, tags: null }), smsOf(plain))
})

const bad = (field: string, problem: string, ...values: unknown[]): [unknown, Fields][] =>
  values.map((value) => [{ ...plain, [field]: value }, { [field]: [problem] }])

const refusals: Record<string, [body: unknown, fields: Fields][]> = {
  'a body that is not an object': [null, [plain], 'sms', 5].map((body) => [
    body,
    { _: ['must be a JSON object'] },
  ]),
  'missing fields': [
    [{}, { to: ['is required'], body: ['is required'], class: ['is required'] }],
    [{ ...plain, class: undefined }, { class: [CLASS] }],
  ],
  'unknown fields': [
    [
      { ...plain, text: 'x', from: 'x', sender_id: null, subject: 'x' },
      {
        text: ['unknown field'],
        from: ['unknown field'],
        sender_id: ['unknown field'],
        subject: ['unknown field'],
      },
    ],
    [
      JSON.parse('{"__proto__":1}'),
      {
        to: ['is required'],
        body: ['is required'],
        class: ['is required'],
        ['__proto__']: ['unknown field'],
      },
    ],
  ],
  'null in every field': [
    [
      { to: null, body: null, class: null, senderId: null, scheduledAt: null, tags: null },
      {
        to: ['must be a string'],
        body: ['must be a string'],
        class: [CLASS],
      },
    ],
  ],
  'numbers that are not E.164': bad(
    'to',
    PHONE,
    ...['', '+', '0821234567', '27821234567', '+0821234567', '+123456', '+1234567890123456'],
    ...['+27 82 123 4567', '+27-821234567', ' +27821234567', '+27821234567\n', '+٢٧٨٢١٢٣٤٥٦٧'],
    ...[
      '\uff0b27821234567',
      '00278212345678',
      'tel:+27821234567',
      '+27821234567\0',
      '+2782123456a',
    ],
  ),
  'other things as number': bad('to', 'must be a string', 27821234567, ['+27821234567'], {}, true),
  'sender IDs of another form': bad(
    'senderId',
    SENDER,
    ...['', ' ', '123', '0123456789', '12 34', 'twelve chars', 'Müller', 'a-b', 'a\n', 'a.b'],
    ...['+123456', '+0821234567', '+27 821234567', 'a\0', '\ud800', 'Ａ'],
  ),
  'classes of another name': bad('class', CLASS, '', 'Marketing', 'otp', 1, ['marketing']),
  'invalid timestamps': [
    [{ ...plain, scheduledAt: 1782896400 }, { scheduledAt: ['must be a string'] }],
    [
      { ...plain, scheduledAt: '2026-07-01T09:00:00' },
      { scheduledAt: ['must have an offset from UTC, as 2026-07-01T09:00:00+02:00'] },
    ],
    [
      { ...plain, scheduledAt: '2026-02-29T09:00:00Z' },
      { scheduledAt: ['must be a date that exists'] },
    ],
  ],
  'invalid bodies': [
    ...bad('body', 'must be a string', 5, ['Hi'], {}, false),
    ...bad('body', 'must not be empty', ''),
    ...bad('body', 'must not contain NUL characters', 'a\0', '\0'),
    ...bad('body', 'must not contain lone surrogates', '\ud83d', 'a\udc8cb'),
  ],
  'bodies that are too long': [
    ...bad('body', 'must be at most 10 segments but has 11', 'x'.repeat(1531), 'x'.repeat(1600)),
    ...bad('body', 'must be at most 10 segments but has 11', '€'.repeat(761)),
    ...bad(
      'body',
      'must be at most 10 segments but has 11, as some of its characters are not in GSM-7',
      ...['ж'.repeat(671), '💌'.repeat(331), `${'x'.repeat(670)}ж`],
    ),
    ...bad(
      'body',
      'must be at most 1600 characters but has 1601',
      'x'.repeat(1601),
      '💌'.repeat(1601),
    ),
    [
      { ...plain, body: `${'x'.repeat(1531)}\0\ud83d` },
      {
        body: [
          'must not contain NUL characters',
          'must not contain lone surrogates',
          'must be at most 10 segments but has 23, as some of its characters are not in GSM-7',
        ],
      },
    ],
  ],
  'tags of another form': [
    ...bad('tags', 'must be an array', 'a', {}),
    ...bad(
      'tags',
      'must have at most 10 tags but has 11',
      Array.from({ length: 11 }, () => 'a'),
    ),
    [
      { ...plain, tags: ['', 'a', 5, 'a\n', 't'.repeat(65)] },
      {
        'tags.0': ['must not be empty'],
        'tags.2': ['must be a string'],
        'tags.3': ['must not contain control characters'],
        'tags.4': ['must be at most 64 characters but has 65'],
      },
    ],
  ],
  'everything at once': [
    [
      { to: '082', body: '', class: 'x', senderId: '', scheduledAt: 'now', tags: [''], more: 1 },
      {
        to: [PHONE],
        body: ['must not be empty'],
        class: [CLASS],
        senderId: [SENDER],
        scheduledAt: ['must be an ISO 8601 timestamp, as 2026-07-01T09:00:00+02:00'],
        'tags.0': ['must not be empty'],
        more: ['unknown field'],
      },
    ],
  ],
}

for (const [what, cases] of Object.entries(refusals)) {
  t.test(`parseSms(): refuses with all problems at once: ${what}`, async (t) => {
    for (const [body, fields] of cases) {
      t.strictSame(fieldsOf(body), fields, JSON.stringify(body).slice(0, 100))
    }
  })
}

t.test('parseSms(): refuses 4 MB of text without dividing it into segments', async (t) => {
  t.strictSame(fieldsOf({ ...plain, body: 'x'.repeat(4 * 1024 * 1024) }), {
    body: ['must be at most 1600 characters but has 4194304'],
  })
})

t.test('parseSms(): accepts a body of 1 to 10 segments', async () => {
  const unit = fc.constantFrom('x', '€', 'ж', '💌')
  const text = fc
    .tuple(unit, fc.nat({ max: 1700 }), unit, fc.nat({ max: 5 }))
    .map(([one, many, other, few]) => one.repeat(many) + other.repeat(few))
  fc.assert(
    fc.property(text, (body) => {
      const segments = segmentsOf(body).parts.length
      const parsed = parseSms({ ...plain, body })
      assert.equal('value' in parsed, body.length > 0 && segments <= 10)
      if ('value' in parsed) assert.equal(parsed.value.segments, segments)
    }),
    { numRuns: 1000 },
  )
})

t.test('parseSms(): returns for any JSON, and Postgres can store what is accepted', async () => {
  const json = fc.jsonValue({ stringUnit: 'binary' })
  const field = fc.oneof(json, fc.constantFrom(...Object.values(plain), 'Acme', ['a']))
  const body = fc.record(
    { to: field, body: field, class: field, senderId: field, scheduledAt: field, tags: field },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.oneof(json, body), (input) => {
      const parsed = parseSms(input)
      if ('fields' in parsed) assert.ok(Object.keys(parsed.fields).length > 0)
      else {
        const { value: sms } = parsed
        for (const text of [sms.body, sms.recipient, ...sms.tags]) {
          assert.ok(text.isWellFormed() && !text.includes('\0'))
        }
      }
    }),
    { numRuns: 2000 },
  )
})
