import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, anSms, errorOf, get, isRefused, post, request } from '../fixtures/http.ts'
import { createOrganisationAt, messageOf } from '../fixtures/messages.ts'
import {
  createOrganisation,
  holdSecond,
  listOf,
  suppress,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { readPage } from '../fixtures/pages.ts'
import { startApiAt, startTestService } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const send = ({ testKey, domain }: TestOrganisation, fields: Record<string, unknown> = {}) =>
  post(`${base}/v1/emails`, testKey, anEmail(domain, fields))

type Channel = {
  path: string
  list: 'emails' | 'messages'
  body(organisation: TestOrganisation, fields?: Record<string, unknown>): Record<string, unknown>
  idPattern: RegExp
  /** The fields of the response besides id, status and mode. */
  price: object
  /** Fields that the schema refuses, and their problems. */
  invalid: [fields: Record<string, unknown>, problems: Record<string, string[]>]
  /** Fields that only SQL refuses, and their problems. */
  refusedBySql: [fields: Record<string, unknown>, problems: Record<string, string[]>]
}

const channels: Record<string, Channel> = {
  email: {
    path: `${base}/v1/emails`,
    list: 'emails',
    body: ({ domain }, fields) => anEmail(domain, fields),
    idPattern: /^em_[0-9a-hjkmnp-tv-z]{26}$/,
    price: {},
    invalid: [
      { to: [], more: 1 },
      { to: ['must have at least 1 address'], more: ['unknown field'] },
    ],
    refusedBySql: [
      { text: undefined, templateId: 'tpl_unknown' },
      { templateId: ['is not a template of this organisation'] },
    ],
  },
  sms: {
    path: `${base}/v1/sms`,
    list: 'messages',
    body: (_, fields) => anSms(fields),
    idPattern: /^sm_[0-9a-hjkmnp-tv-z]{26}$/,
    price: { segments: 1, credits: 0 },
    invalid: [
      { to: '', more: 1 },
      { to: ['must be a phone number in E.164, as +27821234567'], more: ['unknown field'] },
    ],
    refusedBySql: [
      { senderId: 'Unknown', scheduledAt: '2000-01-01T00:00:00Z' },
      {
        scheduledAt: ['must not be in the past'],
        senderId: ['is not an approved sender of this organisation'],
      },
    ],
  },
}

for (const [name, channel] of Object.entries(channels)) {
  const { path, list, body } = channel

  t.test(`test ${name}: is stored and shown as sent, and is never queued`, async (t) => {
    const organisation = await createOrganisation(sql)
    const before = await traces(sql)
    const { status, json } = await post(path, organisation.testKey, body(organisation))
    t.equal(status, 200)
    t.strictSame(json, { id: json.id, status: 'queued', ...channel.price, mode: 'test' })
    t.match(json.id, channel.idPattern)
    t.strictSame(await traces(sql), {
      ...before,
      messages: before.messages + 1,
      keys: before.keys + 1,
    })
    t.match(await messageOf(sql, json.id), { status: 'sent', provider: null, attempts: 0 })
    const shown = (await get(`${path}/${json.id}`, organisation.testKey)).json
    t.match(shown, { status: 'sent', deliveredAt: null, error: null })
    t.equal(shown.sentAt, shown.createdAt)
    t.strictSame(shown.events, [
      { type: 'queued', occurredAt: shown.createdAt, detail: {} },
      { type: 'sent', occurredAt: shown.createdAt, detail: {} },
    ])
  })

  t.test(`test ${name}: is accepted while the organisation is paused`, async (t) => {
    const organisation = await createOrganisation(sql)
    const { id, testKey } = organisation
    await sql`select ops.pause(${id}, 'complaints')`
    t.equal((await post(path, testKey, body(organisation))).status, 200)
    const batch = await post(`${path}/batch`, testKey, { [list]: [body(organisation)] })
    t.strictSame([batch.status, batch.json.results[0].ok], [200, true])
  })

  t.test(`test ${name}: is validated like a live one`, async (t) => {
    const organisation = await createOrganisation(sql)
    const { testKey } = organisation
    const before = await traces(sql)
    isRefused(t, await post(path, testKey, ''), 'invalid_json')
    for (const [fields, problems] of [channel.invalid, channel.refusedBySql]) {
      const message = body(organisation, fields)
      isRefused(t, await post(path, testKey, message), 'validation_error', problems)
      const batch = await post(`${path}/batch`, testKey, { [list]: [message] })
      const error = errorOf('validation_error', problems)
      t.strictSame(batch.json.results, [{ index: 0, ok: false, error }])
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')
  })
}

t.test('test email: domain, suppressions and allowance are not checked', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 0 })
  await suppress(sql, organisation, 'ann@c.example')
  await sql`select ops.suppress_globally('gone@c.example')`
  const before = await traces(sql)
  const { status } = await send(organisation, {
    from: 'hello@elsewhere.example',
    to: ['ann@c.example', 'gone@c.example'],
  })
  t.equal(status, 200)
  const batch = await post(`${base}/v1/emails/batch`, organisation.testKey, {
    emails: [
      anEmail('elsewhere.example'),
      anEmail(organisation.domain, { to: 'gone@c.example', class: 'marketing' }),
    ],
  })
  t.strictSame(
    batch.json.results.map(({ ok, data }: { ok: boolean; data: { status: string } }) => [
      ok,
      data.status,
    ]),
    [
      [true, 'queued'],
      [true, 'queued'],
    ],
  )
  const after = await traces(sql)
  t.strictSame(
    [after.jobs, after.used, after.accepted],
    [before.jobs, before.used, before.accepted],
  )
})

t.test(
  'test email: its template is validated and its subject rendered, its body is not stored',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const [row] = await sql`
    select ops.create_template(${organisation.id}, 'A', 'Hi {{n}}', '<b>{{n}}</b>', null) as template`
    const fields = { subject: undefined, text: undefined, templateId: row?.template }
    isRefused(t, await send(organisation, fields), 'validation_error', {
      'variables.n': ['is needed by the template'],
    })
    const { json } = await send(organisation, { ...fields, variables: { n: '<' } })
    const [message] = await sql`
    select m.subject, b.html from app.messages m left join app.bodies b on b.message_id = m.id
    where m.id = core.decode_id('em', ${json.id})`
    t.strictSame({ ...message }, { subject: 'Hi <', html: null })
  },
)

t.test('test requests count for the rate limit of the organisation', async (t) => {
  const organisation = await createOrganisation(sql)
  await holdSecond(sql, organisation, 99)
  t.equal((await send(organisation)).status, 200)
  isRefused(t, await send(organisation), 'rate_limited')
})

const sendSms = ({ testKey }: TestOrganisation, fields: Record<string, unknown> = {}) =>
  post(`${base}/v1/sms`, testKey, anSms(fields))

t.test('test SMS: shows the credits that a live SMS would take', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 3 })
  const body = 'x'.repeat(307)
  const price = { segments: 3, credits: 0 }
  t.match((await sendSms(organisation, { body })).json, price)
  t.match((await sendSms(organisation, { body })).json, price, 'the first SMS took no credits')
  t.match((await post(`${base}/v1/sms`, organisation.liveKey, anSms({ body }))).json, price)
  const beyondPlan = await sendSms(organisation, { body })
  t.match(beyondPlan.json, { segments: 3, credits: 3 }, 'the plan is used up, so all are credits')
  t.match((await get(`${base}/v1/sms/${beyondPlan.json.id}`, organisation.testKey)).json, {
    segments: 3,
    credits: 3,
  })
})

t.test('test SMS: needs no credits', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 0 })
  isRefused(t, await post(`${base}/v1/sms`, organisation.liveKey, anSms()), 'insufficient_credits')
  const { status, json } = await sendSms(organisation)
  t.strictSame([status, json.credits], [200, 1])
  const messages = [anSms({ body: 'x'.repeat(1530) }), anSms()]
  const batch = await post(`${base}/v1/sms/batch`, organisation.testKey, { messages })
  t.match(batch.json.results, [
    { ok: true, data: { segments: 10, credits: 10 } },
    { ok: true, data: { segments: 1, credits: 1 } },
  ])
})

t.test('test SMS batch: shows the credits that a live batch would take', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 2 })
  const messages = [anSms(), anSms({ body: 'x'.repeat(161) }), anSms()]
  for (const key of [organisation.testKey, organisation.testKey]) {
    const { json } = await post(`${base}/v1/sms/batch`, key, { messages })
    t.match(
      json.results.map(({ data }: { data: { credits: number } }) => data.credits),
      [0, 1, 1],
    )
  }
})

t.test(
  'test marketing SMS: the rules apply at once, and it is shown as sent or rejected',
  async (t) => {
    // The Monday after this Wednesday is not a public holiday.
    const wednesday = '2026-03-04T10:00:00Z'
    const noon = '2026-03-09T12:00:00+02:00'
    const night = '2026-03-09T20:00:00+02:00'
    const { base } = await startApiAt(sql, url, wednesday)
    const organisation = await createOrganisationAt(sql, wednesday)
    const { testKey } = organisation
    const consenting = '+447700900010'
    await atTime(
      sql,
      wednesday,
      (tx) => tx`select ops.record_consent(${organisation.id}, ${consenting}, 'web form')`,
    )
    const news = { class: 'marketing', body: 'News. Reply STOP to opt out' }
    const cases: [fields: Record<string, unknown>, code: string | null][] = [
      [{ to: consenting, scheduledAt: noon }, null],
      [{ to: '+447700900011', scheduledAt: noon }, 'consent_missing'],
      [{ to: consenting, scheduledAt: noon, body: 'News.' }, 'opt_out_footer_missing'],
      [{ to: consenting, scheduledAt: night }, 'outside_sending_hours'],
    ]
    for (const [fields, code] of cases) {
      const { status, json } = await post(`${base}/v1/sms`, testKey, anSms({ ...news, ...fields }))
      t.strictSame([status, json.status], [200, 'scheduled'], `${code}: accepted`)
      const shown = (await get(`${base}/v1/sms/${json.id}`, testKey)).json
      if (code === null) {
        t.match(shown, { status: 'sent', error: null })
        continue
      }
      t.match(shown, { status: 'rejected', sentAt: null, error: { code, message: String } })
      t.strictSame(shown.events, [
        { type: 'queued', occurredAt: shown.createdAt, detail: {} },
        {
          type: 'rejected',
          occurredAt: shown.createdAt,
          detail: { code, text: shown.error.message },
        },
      ])
    }
  },
)

/** The write requests in the table of /docs/api#test-mode, each with what a test key does. */
async function documentedWrites() {
  const { tables } = await readPage('api')
  const table = tables.find(({ head }) => head[1]?.text === 'With a test key')
  return (table?.rows ?? []).flatMap(([writes, effect]) =>
    (writes?.codes ?? []).map((write) => ({ write, words: effect?.text ?? '' })),
  )
}

t.test('the page lists every write with what a test key does, and each does it', async (t) => {
  const organisation = await createOrganisation(sql)
  const { testKey, liveKey, domain } = organisation
  const added = await post(`${base}/v1/domains`, liveKey, { name: 'live.example' })
  const entry = await suppress(sql, organisation, 'ann@c.example')
  const bodies: Record<string, unknown> = {
    'POST /v1/emails': anEmail(domain),
    'POST /v1/emails/batch': { emails: [anEmail(domain)] },
    'POST /v1/sms': anSms(),
    'POST /v1/sms/batch': { messages: [anSms()] },
    'POST /v1/domains': { name: 'test.example' },
    'POST /v1/suppressions': { email: 'bob@c.example' },
  }
  const documented = await documentedWrites()
  const { json } = await get(`${base}/openapi.json`, null)
  const writes = Object.entries(json.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => method !== 'get')
      .map((method) => `${method.toUpperCase()} ${path}`),
  )
  t.strictSame(documented.map(({ write }) => write).sort(), writes.sort())

  for (const { write, words } of documented) {
    const [method = '', path = ''] = write.split(' ')
    const id = path.includes('domains') ? added.json.id : entry
    const before = await traces(sql)
    const response = await request(method, base + path.replace('{id}', id), testKey, bodies[write])
    if (words.includes('insufficient_scope')) {
      isRefused(t, response, 'insufficient_scope', undefined, {
        name: write,
        words: 'Test keys delete nothing; use a live key.',
      })
    } else {
      t.match(response.status, /^20[01]$/, `${write}: ${response.text}`)
      t.match(words, /Nothing is sent|as with a live key/, write)
    }
    t.equal((await traces(sql)).jobs, before.jobs, `${write} sends nothing`)
  }
  const { json: domains } = await get(`${base}/v1/domains`, testKey)
  t.strictSame(
    domains.data.map(({ name }: { name: string }) => name),
    ['test.example', 'live.example', domain],
    'no domain is deleted and one is added',
  )
  const listed = (await listOf(sql, organisation)) as { email: string }[]
  t.strictSame(listed.map(({ email }) => email).sort(), ['ann@c.example', 'bob@c.example'])
})
