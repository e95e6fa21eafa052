import t from 'tap'
import type { ErrorBody } from '../../src/errors.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { holdSecond } from '../fixtures/rate.ts'
import { errorOf, isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const path = `${base}/v1/sms/batch`

type Result = {
  index: number
  ok: boolean
  data?: { id: string; status: string; segments: number; credits: number }
  error?: ErrorBody
}

const invalid = (fields: Record<string, string[]>) => errorOf('validation_error', fields)

const kinds: [item: unknown, error: ErrorBody][] = [
  [null, invalid({ _: ['must be a JSON object'] })],
  ['an SMS', invalid({ _: ['must be a JSON object'] })],
  [[anSms()], invalid({ _: ['must be a JSON object'] })],
  [anSms({ more: 1 }), invalid({ more: ['unknown field'] })],
  [anSms({ class: undefined }), invalid({ class: ['is required'] })],
  [
    anSms({ to: '0821234567', body: '' }),
    invalid({
      to: ['must be a phone number in E.164, as +27821234567'],
      body: ['must not be empty'],
    }),
  ],
  [
    anSms({ body: 'x'.repeat(1531) }),
    invalid({ body: ['must be at most 10 segments but has 11'] }),
  ],
  [
    anSms({ senderId: 'Unknown' }),
    invalid({ senderId: ['is not an approved sender of this organisation'] }),
  ],
  [
    anSms({ scheduledAt: '2000-01-01T00:00:00Z' }),
    invalid({ scheduledAt: ['must not be in the past'] }),
  ],
]

t.test('of 1 000 items 37 are bad, each in its way, and 963 are accepted in order', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 1000 })
  const { id, liveKey } = organisation
  await holdSecond(sql, organisation, 0)
  // The first, the last, and every 28th between.
  const badPlaces = [...Array.from({ length: 36 }, (_, n) => n * 28), 999]
  const messages = Array.from({ length: 1000 }, (_, n): unknown => anSms({ body: `Item ${n}` }))
  const expected = new Map<number, ErrorBody>()
  for (const [n, place] of badPlaces.entries()) {
    const [item, error] = kinds[n % kinds.length] ?? []
    if (!error) throw new Error('no such kind')
    messages[place] = item
    expected.set(place, error)
  }

  const before = await traces(sql)
  const { status, headers, json } = await post(path, liveKey, { messages })
  t.equal(status, 200)
  t.equal(headers.get('x-ratelimit-remaining'), '99', 'one request for the rate limit')
  t.strictSame(Object.keys(json), ['results'])
  const results: Result[] = json.results
  t.strictSame(
    results.map(({ index }) => index),
    messages.map((_, n) => n),
  )
  for (const [index, error] of expected) {
    t.strictSame(results[index], { index, ok: false, error }, `item ${index}: ${error.code}`)
  }
  const accepted = results.filter(({ ok }) => ok)
  t.equal(accepted.length, 963)
  const data = { id: '', status: 'queued', segments: 1, credits: 0 }
  t.strictSame(
    accepted.map((result) => ({ ...result, data: { ...result.data, id: '' } })),
    accepted.map(({ index }) => ({ index, ok: true, data })),
  )
  const rows = await sql<{ id: string; text: string }[]>`
    select core.encode_id('sm', m.id) as id, b.text
    from app.messages m join app.bodies b on b.message_id = m.id
    where m.organisation_id = core.decode_id('org', ${id})`
  const texts = new Map(rows.map((row) => [row.id, row.text]))
  t.strictSame(
    accepted.map(({ data }) => texts.get(data?.id ?? '')),
    accepted.map(({ index }) => `Item ${index}`),
    'each id is that of its item',
  )
  t.strictSame(await traces(sql), {
    ...before,
    messages: before.messages + 963,
    bodies: before.bodies + 963,
    jobs: before.jobs + 963,
    used: before.used + 963,
    ledger: before.ledger + 963,
    accepted: before.accepted + 963,
    keys: before.keys + 1,
  })
})

t.test('where credits run out the rest fails, and what came before still sends', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 3 })
  const { id, liveKey } = organisation
  await sql`select ops.grant_credits(${id}, 4, 'paid')`
  const sized = (segments: number) => anSms({ body: 'x'.repeat(153 * segments) })
  // 2 + 3 + 2 are the 7 there are; a bad item and one that is too dear take nothing.
  const messages = [sized(2), sized(3), { ...sized(9), to: '' }, sized(2), sized(1), sized(1)]
  const { json } = await post(path, liveKey, { messages })
  t.match(
    json.results.map(({ data, error }: Result) => data ?? error?.code),
    [
      { segments: 2, credits: 0 },
      { segments: 3, credits: 2 },
      'validation_error',
      { segments: 2, credits: 2 },
      'insufficient_credits',
      'insufficient_credits',
    ],
  )
  t.strictSame(json.results[5], {
    index: 5,
    ok: false,
    error: errorOf(
      'insufficient_credits',
      undefined,
      'This SMS needs 1 segments; 0 of the plan and 0 credits are left.',
    ),
  })
  const accepted = json.results.filter(({ ok }: Result) => ok)
  for (const { data } of accepted) {
    const shown = await get(`${base}/v1/sms/${data.id}`, liveKey)
    t.match(shown.json, { status: 'queued', segments: data.segments, credits: data.credits })
  }
})

t.test('once one does not fit, a smaller one behind it fails too', async (t) => {
  const { liveKey } = await createOrganisation(sql, { smsIncluded: 2 })
  const messages = [anSms(), anSms({ body: 'x'.repeat(161) }), anSms()]
  const { json } = await post(path, liveKey, { messages })
  t.strictSame(
    json.results.map(({ ok, error }: Result) => ok || error?.message),
    [
      true,
      'This SMS needs 2 segments; 1 of the plan and 0 credits are left.',
      'This SMS needs 1 segments; 1 of the plan and 0 credits are left.',
    ],
  )
})

t.test('a batch has 1 to 1 000 items, in a field of its own, and nothing else', async (t) => {
  const { liveKey } = await createOrganisation(sql, { smsIncluded: 1000 })
  const many = (count: number) => Array.from({ length: count }, () => anSms())
  const cases: Record<string, [unknown, Record<string, string[]>]> = {
    'no field': [{}, { messages: ['is required'] }],
    'no item': [{ messages: [] }, { messages: ['must have at least 1 item'] }],
    '1 001 items': [
      { messages: many(1001) },
      { messages: ['must have at most 1000 items but has 1001'] },
    ],
    'an object': [{ messages: { 0: anSms() } }, { messages: ['must be an array'] }],
    'a batch of emails': [
      { emails: many(1) },
      { messages: ['is required'], emails: ['unknown field'] },
    ],
  }
  const before = await traces(sql)
  for (const [name, [body, fields]] of Object.entries(cases)) {
    isRefused(t, await post(path, liveKey, body), 'validation_error', fields, { name })
  }
  t.strictSame(await traces(sql), before, 'nothing was left behind')
  const most = await post(path, liveKey, { messages: many(1000) })
  t.strictSame([most.status, most.json.results.length], [200, 1000])
  t.ok(most.json.results.every(({ ok }: Result) => ok))
})

t.test('the same SMS twice in a batch is two messages', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await post(path, liveKey, { messages: [anSms(), anSms()] })
  t.not(json.results[0].data.id, json.results[1].data.id)
})
