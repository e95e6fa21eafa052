import t from 'tap'
import type { ErrorBody } from '../../src/errors.ts'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, anSms, errorOf, get, isRefused, post } from '../fixtures/http.ts'
import {
  createOrganisation,
  holdSecond,
  suppress,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

type Result = {
  index: number
  ok: boolean
  data?: { id: string; status: string; segments?: number; credits?: number }
  error?: ErrorBody
}

/** An item that is refused, and its error. */
type BadItem = [item: unknown, error: ErrorBody]

type Channel = {
  path: string
  list: 'emails' | 'messages'
  /** A valid item; `textsById` shows its n. */
  item(organisation: TestOrganisation, n?: number): unknown
  badItems(organisation: TestOrganisation): Promise<BadItem[]>
  /** The data of an accepted item, without its ID. */
  data: object
  /** Returns `Item <n>` of each accepted item by message ID. */
  textsById(organisation: TestOrganisation): Promise<Map<string, string>>
  ledgerRows: number
}

const invalid = (fields: Record<string, string[]>) => errorOf('validation_error', fields)
const notAnObject = invalid({ _: ['must be a JSON object'] })
const templated = { subject: undefined, text: undefined }

const channels: Record<string, Channel> = {
  email: {
    path: `${base}/v1/emails/batch`,
    list: 'emails',
    item: ({ domain }, n = 0) => anEmail(domain, { subject: `Item ${n}` }),
    data: { id: '', status: 'queued' },
    ledgerRows: 0,
    async badItems(organisation) {
      const { id, domain } = organisation
      await suppress(sql, organisation, 'ann@c.example')
      const [row] = await sql`
        select ops.create_template(${id}, 'A', 'Hi {{name}}', null, 'Hi {{name}}') as template`
      const email = (fields: Record<string, unknown>) => anEmail(domain, fields)
      return [
        [null, notAnObject],
        ['an email', notAnObject],
        [[email({})], notAnObject],
        [email({ more: 1 }), invalid({ more: ['unknown field'] })],
        [email({ to: [] }), invalid({ to: ['must have at least 1 address'] })],
        [
          email({ to: ['a@c.example', ''], subject: 5 }),
          invalid({ 'to.1': ['must not be empty'], subject: ['must be a string'] }),
        ],
        [
          email({ attachments: [] }),
          invalid({ attachments: ['attachments are not yet available'] }),
        ],
        [
          email({ from: 'hello@elsewhere.example' }),
          errorOf(
            'domain_not_verified',
            undefined,
            'elsewhere.example is not verified for this organisation; add the domain, or send from a verified one.',
          ),
        ],
        [
          email({ to: ['fine@c.example', 'Ann <ANN@c.example>'] }),
          errorOf('recipient_suppressed', { to: ['ann@c.example: manual'] }),
        ],
        [
          email({ ...templated, templateId: 'tpl_unknown' }),
          invalid({ templateId: ['is not a template of this organisation'] }),
        ],
        [
          email({ ...templated, templateId: row?.template }),
          invalid({ 'variables.name': ['is needed by the template'] }),
        ],
      ]
    },
    async textsById({ id }) {
      const rows = await sql`
        select core.encode_id('em', id) as id, subject from app.messages
        where organisation_id = core.decode_id('org', ${id})`
      return new Map(rows.map((row) => [row.id, row.subject]))
    },
  },
  sms: {
    path: `${base}/v1/sms/batch`,
    list: 'messages',
    item: (_, n = 0) => anSms({ body: `Item ${n}` }),
    data: { id: '', status: 'queued', segments: 1, credits: 0 },
    ledgerRows: 963,
    async badItems() {
      return [
        [null, notAnObject],
        ['an SMS', notAnObject],
        [[anSms()], notAnObject],
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
    },
    async textsById({ id }) {
      const rows = await sql`
        select core.encode_id('sm', m.id) as id, b.text
        from app.messages m join app.bodies b on b.message_id = m.id
        where m.organisation_id = core.decode_id('org', ${id})`
      return new Map(rows.map((row) => [row.id, row.text]))
    },
  },
}

for (const [name, channel] of Object.entries(channels)) {
  const { path, list, item } = channel

  t.test(
    `${name} batch: 37 bad items of 1 000 fail alone, 963 are accepted in order`,
    async (t) => {
      const organisation = await createOrganisation(sql, { smsIncluded: 1000 })
      const badItems = await channel.badItems(organisation)
      await holdSecond(sql, organisation, 0)
      // The first, the last, and every 28th between.
      const badPlaces = [...Array.from({ length: 36 }, (_, n) => n * 28), 999]
      const items = Array.from({ length: 1000 }, (_, n) => item(organisation, n))
      const expected = new Map<number, ErrorBody>()
      for (const [n, place] of badPlaces.entries()) {
        const [bad, error] = badItems[n % badItems.length] as BadItem
        items[place] = bad
        expected.set(place, error)
      }

      const before = await traces(sql)
      const { status, headers, json } = await post(path, organisation.liveKey, { [list]: items })
      t.equal(status, 200)
      t.equal(headers.get('x-ratelimit-remaining'), '99', 'one request for the rate limit')
      t.strictSame(Object.keys(json), ['results'])
      const results: Result[] = json.results
      t.strictSame(
        results.map(({ index }) => index),
        items.map((_, n) => n),
      )
      for (const [index, error] of expected) {
        t.strictSame(results[index], { index, ok: false, error }, `item ${index}: ${error.code}`)
      }
      const accepted = results.filter(({ ok }) => ok)
      t.equal(accepted.length, 963)
      t.strictSame(
        accepted.map((result) => ({ ...result, data: { ...result.data, id: '' } })),
        accepted.map(({ index }) => ({ index, ok: true, data: channel.data })),
      )
      const texts = await channel.textsById(organisation)
      t.strictSame(
        accepted.map(({ data }) => texts.get(data?.id ?? '')),
        accepted.map(({ index }) => `Item ${index}`),
        'each ID belongs to its item',
      )
      t.strictSame(await traces(sql), {
        ...before,
        messages: before.messages + 963,
        bodies: before.bodies + 963,
        jobs: before.jobs + 963,
        used: before.used + 963,
        ledger: before.ledger + channel.ledgerRows,
        accepted: before.accepted + 963,
        keys: before.keys + 1,
      })
    },
  )

  t.test(`${name} batch: has 1 to 1 000 items in its one field`, async (t) => {
    const organisation = await createOrganisation(sql, { smsIncluded: 1000 })
    const { liveKey } = organisation
    const many = (count: number) => Array.from({ length: count }, () => item(organisation))
    const otherList = list === 'emails' ? 'messages' : 'emails'
    const single = item(organisation) as object
    const cases: Record<string, [unknown, Record<string, string[]>]> = {
      'no field': [{}, { [list]: ['is required'] }],
      'no item': [{ [list]: [] }, { [list]: ['must have at least 1 item'] }],
      '1 001 items': [
        { [list]: many(1001) },
        { [list]: ['must have at most 1000 items but has 1001'] },
      ],
      'an object': [{ [list]: { 0: single } }, { [list]: ['must be an array'] }],
      null: [{ [list]: null }, { [list]: ['must be an array'] }],
      'an unknown field': [
        { [list]: many(1), from: 'a@c.example', [otherList]: [] },
        { from: ['unknown field'], [otherList]: ['unknown field'] },
      ],
      'two problems': [
        { [list]: [], extra: 1 },
        { [list]: ['must have at least 1 item'], extra: ['unknown field'] },
      ],
      'the field of the other channel': [
        { [otherList]: many(1) },
        { [list]: ['is required'], [otherList]: ['unknown field'] },
      ],
      'a single message': [
        single,
        {
          [list]: ['is required'],
          ...Object.fromEntries(Object.keys(single).map((field) => [field, ['unknown field']])),
        },
      ],
    }
    const before = await traces(sql)
    for (const [name, [body, fields]] of Object.entries(cases)) {
      isRefused(t, await post(path, liveKey, body), 'validation_error', fields, { name })
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')
    const most = await post(path, liveKey, { [list]: many(1000) })
    t.strictSame([most.status, most.json.results.length], [200, 1000])
    t.ok(most.json.results.every(({ ok }: Result) => ok))
  })

  t.test(`${name} batch: the same item twice makes two messages`, async (t) => {
    const organisation = await createOrganisation(sql)
    const items = [item(organisation), item(organisation)]
    const { json } = await post(path, organisation.liveKey, { [list]: items })
    t.not(json.results[0].data.id, json.results[1].data.id)
  })
}

t.test('batch: counts as one request for the rate limit', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  await holdSecond(sql, organisation, 98)
  const batch = { emails: Array.from({ length: 500 }, () => anEmail(domain)) }
  const path = `${base}/v1/emails/batch`
  for (const remaining of ['1', '0']) {
    const { status, headers } = await post(path, liveKey, batch)
    t.strictSame([status, headers.get('x-ratelimit-remaining')], [200, remaining])
  }
  isRefused(t, await post(path, liveKey, batch), 'rate_limited')
})

t.test(
  'email batch: accepts 2 MB items, small items and items with a template together',
  async (t) => {
    const { id, liveKey, domain } = await createOrganisation(sql)
    const [row] =
      await sql`select ops.create_template(${id}, 'A', 'Hi {{name}}', null, 'Hi.') as id`
    const emails = Array.from({ length: 12 }, (_, n) =>
      anEmail(domain, n % 2 ? { html: 'x'.repeat(2 * 1024 * 1024) } : {}),
    )
    emails.push(anEmail(domain, { ...templated, templateId: row?.id, variables: { name: 'Ann' } }))
    const [batch, single] = await Promise.all([
      post(`${base}/v1/emails/batch`, liveKey, { emails }),
      post(`${base}/v1/emails`, liveKey, anEmail(domain)),
    ])
    t.equal(batch.json.results.filter(({ ok }: Result) => ok).length, 13)
    t.equal(single.status, 200)
    const shown = await get(`${base}/v1/emails/${batch.json.results[12].data.id}`, liveKey)
    t.equal(shown.json.subject, 'Hi Ann')
  },
)

t.test('SMS batch: when credits run out the rest fails and earlier items are sent', async (t) => {
  const { id, liveKey } = await createOrganisation(sql, { smsIncluded: 3 })
  await sql`select ops.grant_credits(${id}, 4, 'paid')`
  const sized = (segments: number) => anSms({ body: 'x'.repeat(153 * segments) })
  // 2 + 3 + 2 segments use the 7 that are paid; the invalid item takes none.
  const messages = [sized(2), sized(3), { ...sized(9), to: '' }, sized(2), sized(1), sized(1)]
  const { json } = await post(`${base}/v1/sms/batch`, liveKey, { messages })
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
  const short = 'This SMS needs 1 segment; 0 of the plan and 0 credits are left.'
  const error = errorOf('insufficient_credits', undefined, short)
  t.strictSame(json.results[5], { index: 5, ok: false, error })
  for (const { data } of json.results.filter(({ ok }: Result) => ok)) {
    const shown = await get(`${base}/v1/sms/${data.id}`, liveKey)
    t.match(shown.json, { status: 'queued', segments: data.segments, credits: data.credits })
  }
})

t.test('SMS batch: after an item that does not fit a smaller one fails as well', async (t) => {
  const { liveKey } = await createOrganisation(sql, { smsIncluded: 2 })
  const messages = [anSms(), anSms({ body: 'x'.repeat(161) }), anSms()]
  const { json } = await post(`${base}/v1/sms/batch`, liveKey, { messages })
  t.strictSame(
    json.results.map(({ ok, error }: Result) => ok || error?.message),
    [
      true,
      'This SMS needs 2 segments; 1 of the plan and 0 credits are left.',
      'This SMS needs 1 segment; 1 of the plan and 0 credits are left.',
    ],
  )
})
