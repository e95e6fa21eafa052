import t from 'tap'
import type { ErrorBody } from '../../src/errors.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { holdSecond } from '../fixtures/rate.ts'
import { errorOf, isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const path = `${base}/v1/emails/batch`

type Result = {
  index: number
  ok: boolean
  data?: { id: string; status: string }
  error?: ErrorBody
}

t.test('of 1 000 items 37 are bad, each in its way, and 963 are accepted in order', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id, liveKey, domain } = organisation
  await holdSecond(sql, organisation, 0)
  await sql`
    insert into app.suppressions (id, organisation_id, email, reason)
    values (gen_random_uuid(), core.decode_id('org', ${id}), 'ann@c.example', 'complaint')`
  const [row] = await sql`
    select ops.create_template(${id}, 'A', 'Hi {{name}}', null, 'Hi {{name}}') as template`

  const email = (fields: Record<string, unknown>) => anEmail(domain, fields)
  const invalid = (fields: Record<string, string[]>) => errorOf('validation_error', fields)
  const templated = { subject: undefined, text: undefined }
  const kinds: [unknown, ErrorBody][] = [
    [null, invalid({ _: ['must be a JSON object'] })],
    ['an email', invalid({ _: ['must be a JSON object'] })],
    [[email({})], invalid({ _: ['must be a JSON object'] })],
    [email({ more: 1 }), invalid({ more: ['unknown field'] })],
    [email({ to: [] }), invalid({ to: ['must have at least 1 address'] })],
    [
      email({ to: ['a@c.example', ''], subject: 5 }),
      invalid({ 'to.1': ['must not be empty'], subject: ['must be a string'] }),
    ],
    [email({ attachments: [] }), invalid({ attachments: ['attachments are not yet available'] })],
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
      errorOf('recipient_suppressed', { to: ['ann@c.example: complaint'] }),
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
  // The first, the last, and every 28th between.
  const badPlaces = [...Array.from({ length: 36 }, (_, n) => n * 28), 999]
  const emails = Array.from({ length: 1000 }, (_, n): unknown => email({ subject: `Item ${n}` }))
  const expected = new Map<number, ErrorBody>()
  for (const [n, place] of badPlaces.entries()) {
    const [item, error] = kinds[n % kinds.length] ?? []
    if (!error) throw new Error('no such kind')
    emails[place] = item
    expected.set(place, error)
  }
  // A template that works among them.
  emails[500] = email({ ...templated, templateId: row?.template, variables: { name: 'Item 500' } })

  const before = await traces(sql)
  const { status, headers, json } = await post(path, liveKey, { emails })
  t.equal(status, 200)
  t.equal(headers.get('x-ratelimit-remaining'), '99', 'one request for the rate limit')
  t.strictSame(Object.keys(json), ['results'])
  const results: Result[] = json.results
  t.equal(results.length, 1000)
  t.strictSame(
    results.map(({ index }) => index),
    emails.map((_, n) => n),
  )
  for (const [index, error] of expected) {
    t.strictSame(results[index], { index, ok: false, error }, `item ${index}: ${error.code}`)
  }
  const accepted = results.filter(({ ok }) => ok)
  t.equal(accepted.length, 963)
  t.ok(accepted.every(({ index }) => !expected.has(index)))
  t.ok(accepted.every(({ data }) => data?.status === 'queued'))
  t.ok(accepted.every((result) => Object.keys(result).join() === 'index,ok,data'))
  t.ok(accepted.every(({ data }) => Object.keys(data ?? {}).join() === 'id,status'))
  t.equal(new Set(accepted.map(({ data }) => data?.id)).size, 963)

  const rows = await sql`
    select core.encode_id('em', id) as id, subject from app.messages
    where organisation_id = core.decode_id('org', ${id})`
  const subjects = new Map(rows.map((row) => [row.id, row.subject.replace('Hi ', '')]))
  t.strictSame(
    accepted.map(({ data }) => subjects.get(data?.id)),
    accepted.map(({ index }) => `Item ${index}`),
    'each id is that of its item',
  )
  t.strictSame(await traces(sql), {
    ...before,
    messages: before.messages + 963,
    bodies: before.bodies + 963,
    jobs: before.jobs + 963,
    used: before.used + 963,
    accepted: before.accepted + 963,
    keys: before.keys + 1,
  })
})

t.test('a batch has 1 to 1 000 items, in a field of its own, and nothing else', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const many = (count: number) => Array.from({ length: count }, () => anEmail(domain))
  const cases: Record<string, [unknown, Record<string, string[]>]> = {
    'no field': [{}, { emails: ['is required'] }],
    'no item': [{ emails: [] }, { emails: ['must have at least 1 item'] }],
    '1 001 items': [
      { emails: many(1001) },
      { emails: ['must have at most 1000 items but has 1001'] },
    ],
    'an object': [{ emails: { 0: anEmail(domain) } }, { emails: ['must be an array'] }],
    null: [{ emails: null }, { emails: ['must be an array'] }],
    'an unknown field': [
      { emails: many(1), from: 'a@c.example', messages: [] },
      { from: ['unknown field'], messages: ['unknown field'] },
    ],
    'both at once': [
      { emails: [], extra: 1 },
      { emails: ['must have at least 1 item'], extra: ['unknown field'] },
    ],
    'an email': [
      anEmail(domain),
      {
        emails: ['is required'],
        from: ['unknown field'],
        to: ['unknown field'],
        subject: ['unknown field'],
        text: ['unknown field'],
      },
    ],
  }
  const before = await traces(sql)
  for (const [name, [body, fields]] of Object.entries(cases)) {
    isRefused(t, await post(path, liveKey, body), 'validation_error', fields, { name })
  }
  t.strictSame(await traces(sql), before, 'nothing was left behind')
  t.equal((await post(path, liveKey, { emails: many(1) })).status, 200)
  const most = await post(path, liveKey, { emails: many(1000) })
  t.strictSame([most.status, most.json.results.length], [200, 1000])
})

t.test('a batch counts as one request for the rate limit', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  await holdSecond(sql, organisation, 98)
  const batch = { emails: Array.from({ length: 500 }, () => anEmail(domain)) }
  for (const remaining of ['1', '0']) {
    const { status, headers } = await post(path, liveKey, batch)
    t.strictSame([status, headers.get('x-ratelimit-remaining')], [200, remaining])
  }
  isRefused(t, await post(path, liveKey, batch), 'rate_limited')
})

t.test('the same email twice in a batch is two messages', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const { json } = await post(path, liveKey, { emails: [anEmail(domain), anEmail(domain)] })
  t.not(json.results[0].data.id, json.results[1].data.id)
})

t.test('large items and small ones go together', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const emails = Array.from({ length: 12 }, (_, n) =>
    anEmail(domain, n % 2 ? { html: 'x'.repeat(2 * 1024 * 1024) } : {}),
  )
  const [batch, single] = await Promise.all([
    post(path, liveKey, { emails }),
    post(`${base}/v1/emails`, liveKey, anEmail(domain)),
  ])
  t.equal(batch.json.results.filter(({ ok }: Result) => ok).length, 12)
  t.equal(single.status, 200)
})
