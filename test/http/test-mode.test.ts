import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, get, post, request } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { readPage } from '../fixtures/pages.ts'
import { holdSecond } from '../fixtures/rate.ts'
import { errorOf, isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { listOf, suppress } from '../fixtures/suppressions.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const send = ({ testKey, domain }: TestOrganisation, fields: Record<string, unknown> = {}) =>
  post(`${base}/v1/emails`, testKey, anEmail(domain, fields))

t.test('a test send is answered like a live one, is kept, and goes nowhere', async (t) => {
  const organisation = await createOrganisation(sql)
  const before = await traces(sql)
  const { status, json, text } = await send(organisation)
  t.equal(status, 200)
  t.equal(text, `{"id":"${json.id}","status":"queued","mode":"test"}`)
  t.match(json.id, /^em_[0-9a-hjkmnp-tv-z]{26}$/)
  t.strictSame(await traces(sql), {
    ...before,
    messages: before.messages + 1,
    keys: before.keys + 1,
  })
  const [message] = await sql`
    select mode, status, sent_at = created_at as is_sent_at_once, provider, attempts
    from app.messages where id = core.decode_id('em', ${json.id})`
  t.strictSame(
    { ...message },
    { mode: 'test', status: 'sent', isSentAtOnce: true, provider: null, attempts: 0 },
  )
})

t.test('a test message is shown as sent, with the timeline queued and sent', async (t) => {
  const organisation = await createOrganisation(sql)
  const { json } = await send(organisation)
  const message = await get(`${base}/v1/emails/${json.id}`, organisation.testKey)
  const { status, createdAt, sentAt, deliveredAt, error, events } = message.json
  t.strictSame({ status, deliveredAt, error }, { status: 'sent', deliveredAt: null, error: null })
  t.equal(sentAt, createdAt)
  t.strictSame(events, [
    { type: 'queued', occurredAt: createdAt, detail: {} },
    { type: 'sent', occurredAt: createdAt, detail: {} },
  ])
})

t.test('test sends pass over domain, suppressions and allowance', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 0 })
  await sql`
    insert into app.suppressions (id, organisation_id, email, reason)
    values (gen_random_uuid(), core.decode_id('org', ${organisation.id}), 'ann@c.example', 'manual')`
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

t.test('test sends go on while their organisation is paused', async (t) => {
  const organisation = await createOrganisation(sql)
  await sql`select ops.pause(${organisation.id}, 'complaints')`
  t.equal((await send(organisation)).status, 200)
  const batch = { emails: [anEmail(organisation.domain)] }
  const answer = await post(`${base}/v1/emails/batch`, organisation.testKey, batch)
  t.strictSame([answer.status, answer.json.results[0].ok], [200, true])
})

t.test('test sends are validated like live ones', async (t) => {
  const organisation = await createOrganisation(sql)
  const before = await traces(sql)
  isRefused(t, await send(organisation, { to: [], more: 1 }), 'validation_error', {
    to: ['must have at least 1 address'],
    more: ['unknown field'],
  })
  isRefused(t, await post(`${base}/v1/emails`, organisation.testKey, ''), 'invalid_json')
  const unknown = { text: undefined, templateId: 'tpl_unknown' }
  const fields = { templateId: ['is not a template of this organisation'] }
  isRefused(t, await send(organisation, unknown), 'validation_error', fields)
  const batch = await post(`${base}/v1/emails/batch`, organisation.testKey, {
    emails: [anEmail(organisation.domain, unknown)],
  })
  const error = errorOf('validation_error', fields)
  t.strictSame(batch.json.results, [{ index: 0, ok: false, error }])
  t.strictSame(await traces(sql), before, 'nothing is kept')
})

t.test(
  'a template is judged and its subject rendered for a test email, whose body is not kept',
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

t.test('test requests count for the rate limit of their organisation', async (t) => {
  const organisation = await createOrganisation(sql)
  await holdSecond(sql, organisation, 99)
  t.equal((await send(organisation)).status, 200)
  isRefused(t, await send(organisation), 'rate_limited')
})

/** The writes of the table in /docs/api#test-mode, each with what the page says of a test key. */
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
    const answer = await request(method, base + path.replace('{id}', id), testKey, bodies[write])
    if (words.includes('insufficient_scope')) {
      isRefused(t, answer, 'insufficient_scope', undefined, {
        name: write,
        words: 'Test keys delete nothing; use a live key.',
      })
    } else {
      t.match(answer.status, /^20[01]$/, `${write}: ${answer.text}`)
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
