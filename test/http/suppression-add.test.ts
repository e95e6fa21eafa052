import t from 'tap'
import { createDatabase, meetAt } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post, request } from '../fixtures/http.ts'
import { createOrganisation, liftRate, listOf, suppress } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const suppressions = `${base}/v1/suppressions`

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

t.test('POST /v1/suppressions: returns the entry as the list shows it', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const response = await post(suppressions, liveKey, {
    email: 'ann@c.example',
    note: 'asked us to',
  })
  t.equal(response.status, 201)
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  const { id, createdAt } = response.json
  t.match(id, /^sup_[0-9a-hjkmnp-tv-z]{26}$/)
  t.match(createdAt, ISO)
  const email = 'ann@c.example'
  const entry = { id, email, reason: 'manual', messageId: null, note: 'asked us to', createdAt }
  t.equal(
    response.text,
    JSON.stringify(entry),
    'in the order of the API reference and without spaces',
  )
  const { json } = await get(suppressions, liveKey)
  t.strictSame(json, { data: [entry], nextCursor: null })
})

t.test('POST /v1/suppressions: reason defaults to manual, note to an empty string', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  for (const [body, expected] of [
    [{}, { reason: 'manual', note: '' }],
    [{ reason: 'manual' }, { reason: 'manual', note: '' }],
    [
      { reason: 'unsubscribe', note: '' },
      { reason: 'unsubscribe', note: '' },
    ],
    [{ note: ' two\nlines\t💌 ' }, { reason: 'manual', note: ' two\nlines\t💌 ' }],
    [{ note: 'x'.repeat(2000) }, { reason: 'manual', note: 'x'.repeat(2000) }],
  ] as const) {
    const email = `a${Math.random()}@c.example`
    const { status, json } = await post(suppressions, liveKey, { email, ...body })
    t.match({ status, ...json }, { status: 201, email, ...expected })
  }
})

t.test('POST /v1/suppressions: the address is stored in lower case and ASCII', async (t) => {
  const organisation = await createOrganisation(sql)
  for (const [given, kept] of [
    ['Ann@C.Example', 'ann@c.example'],
    ['JORG@BÜCHER.example', 'jorg@xn--bcher-kva.example'],
    [' bob@c.example ', 'bob@c.example'],
    ["O'Brien+Tag@c.example", "o'brien+tag@c.example"],
    [`${'x'.repeat(64)}@${'a.'.repeat(91)}example`, `${'x'.repeat(64)}@${'a.'.repeat(91)}example`],
  ] as const) {
    const { status, json, text } = await post(suppressions, organisation.liveKey, { email: given })
    t.strictSame([status, json.email], [201, kept], text)
  }
})

t.test('POST /v1/suppressions: an existing entry gets 200 and is unchanged', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, testKey } = organisation
  const first = await post(suppressions, liveKey, { email: 'ann@c.example', note: 'first' })
  for (const [key, body] of [
    [liveKey, { email: 'ann@c.example', note: 'first' }],
    [liveKey, { email: 'ANN@c.EXAMPLE', note: 'second', reason: 'unsubscribe' }],
    [testKey, { email: 'ann@c.example' }],
  ] as const) {
    const again = await post(suppressions, key, body)
    t.strictSame([again.status, again.text], [200, first.text])
    t.equal(again.headers.get('idempotent-replayed'), null)
  }
  for (const [reason, added] of [
    ['complaint', 'manual'],
    ['hard_bounce', 'manual'],
    ['complaint', 'unsubscribe'],
    ['unsubscribe', 'unsubscribe'],
  ] as const) {
    const email = `${reason}-${added}@c.example`
    const id = await suppress(sql, organisation, email, reason)
    const { status, json } = await post(suppressions, liveKey, { email, reason: added, note: 'x' })
    t.match([status, json], [200, { id, reason, note: '' }])
  }
})

t.test(
  'POST /v1/suppressions: manual on top of unsubscribe blocks all email until it is deleted',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    const email = 'ann@c.example'
    const first = await post(suppressions, liveKey, { email, reason: 'unsubscribe', note: 'left' })
    const send = () => post(`${base}/v1/emails`, liveKey, anEmail(domain, { to: email }))
    t.equal((await send()).status, 200)

    const widened = await post(suppressions, liveKey, { email, reason: 'manual', note: 'by phone' })
    t.strictSame(
      [widened.status, widened.json],
      [200, { ...first.json, reason: 'manual', note: 'by phone' }],
    )
    isRefused(t, await send(), 'recipient_suppressed', { to: [`${email}: manual`] })
    const again = await post(suppressions, liveKey, { email, reason: 'unsubscribe' })
    t.strictSame(
      [again.status, again.text],
      [200, widened.text],
      'unsubscribe does not replace manual',
    )

    t.equal((await request('DELETE', `${suppressions}/${first.json.id}`, liveKey)).status, 200)
    t.strictSame(await listOf(sql, organisation), [{ email, reason: 'unsubscribe', note: '' }])
    t.equal((await send()).status, 200)
  },
)

t.test(
  'POST /v1/suppressions: lists are separate, and an address that bounced for others can be added',
  async (t) => {
    const one = await createOrganisation(sql)
    const two = await createOrganisation(sql)
    await sql`select ops.suppress_globally('gone@c.example')`
    const responses = [
      await post(suppressions, one.liveKey, { email: 'gone@c.example' }),
      await post(suppressions, two.liveKey, { email: 'gone@c.example' }),
    ]
    t.strictSame(
      responses.map(({ status, json }) => [status, json.reason]),
      [
        [201, 'manual'],
        [201, 'manual'],
      ],
    )
    t.not(responses[0]?.json.id, responses[1]?.json.id)
  },
)

t.test(
  'POST /v1/suppressions: an entry blocks the next send, unsubscribe only marketing',
  async (t) => {
    const { liveKey, domain } = await createOrganisation(sql)
    await post(suppressions, liveKey, { email: 'ann@c.example' })
    await post(suppressions, liveKey, { email: 'bob@c.example', reason: 'unsubscribe' })
    const send = (to: string, emailClass: string) =>
      post(`${base}/v1/emails`, liveKey, anEmail(domain, { to, class: emailClass }))
    for (const [to, emailClass, reason] of [
      ['Ann@c.example', 'transactional', 'manual'],
      ['ann@C.example', 'marketing', 'manual'],
      ['bob@c.example', 'marketing', 'unsubscribe'],
    ] as const) {
      const fields = { to: [`${to.toLowerCase()}: ${reason}`] }
      isRefused(t, await send(to, emailClass), 'recipient_suppressed', fields)
    }
    t.equal((await send('bob@c.example', 'transactional')).status, 200)
  },
)

t.test(
  'POST /v1/suppressions: accepts a note of 2 000 characters, and null in optional fields',
  async (t) => {
    const { liveKey } = await createOrganisation(sql)
    const note = '💌'.repeat(2000)
    const long = await post(`${base}/v1/suppressions`, liveKey, { email: 'ann@c.example', note })
    t.match(long, { status: 201, json: { note } })
    const body = { email: 'bob@c.example', reason: null, note: null }
    const plain = await post(`${base}/v1/suppressions`, liveKey, body)
    t.match(plain, { status: 201, json: { reason: 'manual', note: '' } })
  },
)

t.test('POST /v1/suppressions: reports all problems and stores nothing', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const notBare = ['must be a bare email address, as name@example.com']
  const reasons = ['must be manual or unsubscribe']
  const wrong: [body: unknown, fields: Record<string, string[]>][] = [
    [{}, { email: ['is required'] }],
    [{ email: null }, { email: ['must be a string'] }],
    [{ email: ['ann@c.example'] }, { email: ['must be a string'] }],
    [{ email: '' }, { email: ['must not be empty'] }],
    [{ email: 'ann' }, { email: notBare }],
    [{ email: '@c.example' }, { email: notBare }],
    [{ email: 'Ann <ann@c.example>' }, { email: notBare }],
    [{ email: '<ann@c.example>' }, { email: notBare }],
    [
      { email: 'ann@c.example, bob@c.example' },
      { email: ['must be one address, not a list or a group'] },
    ],
    [{ email: 'ann@localhost' }, { email: ['must have a domain such as example.com after the @'] }],
    [{ email: 'ann\0@c.example' }, { email: ['must not contain control characters'] }],
    [{ email: 'jürgen@c.example' }, { email: ['must have only ASCII characters before the @'] }],
    [
      { email: `${'x'.repeat(64)}@${'a.'.repeat(92)}example` },
      { email: ['must be an address of at most 254 characters but has 256'] },
    ],
    [{ email: 'ann@c.example', reason: 'complaint' }, { reason: reasons }],
    [{ email: 'ann@c.example', reason: 'hard_bounce' }, { reason: reasons }],
    [{ email: 'ann@c.example', reason: 'Manual' }, { reason: reasons }],
    [{ email: 'ann@c.example', note: 'a\0' }, { note: ['must not contain NUL characters'] }],
    [{ email: 'ann@c.example', note: '\ud800' }, { note: ['must not contain lone surrogates'] }],
    [
      { email: 'ann@c.example', note: 'x'.repeat(2001) },
      { note: ['must be at most 2000 characters but has 2001'] },
    ],
    [
      { mail: 'ann@c.example', reason: 'x', note: 1, id: 'sup_1' },
      {
        email: ['is required'],
        reason: reasons,
        note: ['must be a string'],
        mail: ['unknown field'],
        id: ['unknown field'],
      },
    ],
    [[], { _: ['must be a JSON object'] }],
  ]
  for (const [body, fields] of wrong) {
    const response = await post(suppressions, organisation.liveKey, body, {
      'Idempotency-Key': 'the same',
    })
    isRefused(t, response, 'validation_error', fields, { name: JSON.stringify(body).slice(0, 80) })
  }
  isRefused(t, await post(suppressions, organisation.liveKey, ''), 'invalid_json')
  t.strictSame(await listOf(sql, organisation), [])
  const right = await post(
    suppressions,
    organisation.liveKey,
    { email: 'ann@c.example' },
    { 'Idempotency-Key': 'the same' },
  )
  t.equal(right.status, 201, 'the key is free')
})

t.test(
  'POST /v1/suppressions: two concurrent additions of an address make one entry',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const responses = await meetAt(sql, organisation, 2, () =>
      Promise.all(
        ['first', 'second'].map((note) =>
          post(suppressions, organisation.liveKey, { email: 'ann@c.example', note }),
        ),
      ),
    )
    t.strictSame(responses.map(({ status }) => status).sort(), [200, 201])
    t.equal(responses[0]?.text, responses[1]?.text)
    t.equal((await listOf(sql, organisation)).length, 1)
  },
)

t.test('POST /v1/suppressions: 64 concurrent additions of an address make one entry', async (t) => {
  const organisation = await createOrganisation(sql)
  const responses = await Promise.all(
    Array.from({ length: 64 }, (_, n) =>
      post(suppressions, organisation.liveKey, { email: 'ann@c.example', note: `${n}` }),
    ),
  )
  t.equal(responses.filter(({ status }) => status === 201).length, 1)
  t.equal(responses.filter(({ status }) => status === 200).length, 63)
  t.equal(new Set(responses.map(({ text }) => text)).size, 1)
})

const waitsForALock = () =>
  until('the call to wait for the entry', async () => {
    const [row] = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    return row
  })

t.test(
  'POST /v1/suppressions: waits for an entry that a bounce adds at the same time',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { adding, id } = await sql.begin(async (tx) => {
      const id = await suppress(tx as never, organisation, 'ann@c.example', 'hard_bounce')
      const adding = post(suppressions, organisation.liveKey, { email: 'ann@c.example' })
      await waitsForALock()
      return { adding, id }
    })
    const { status, json } = await adding
    t.match([status, json], [200, { id, reason: 'hard_bounce' }])
  },
)

t.test('POST /v1/suppressions: recreates an entry that is deleted at the same time', async (t) => {
  const organisation = await createOrganisation(sql)
  const old = await suppress(sql, organisation, 'ann@c.example', 'hard_bounce')
  const { adding } = await sql.begin(async (tx) => {
    await tx`delete from app.suppressions where id = core.decode_id('sup', ${old})`
    const adding = post(suppressions, organisation.liveKey, { email: 'ann@c.example' })
    await waitsForALock()
    return { adding }
  })
  const { status, json } = await adding
  t.match([status, json.reason], [201, 'manual'])
  t.not(json.id, old)
})

t.test('POST /v1/suppressions: after an error 500, without an entry or key', async (t) => {
  const organisation = await createOrganisation(sql)
  const add = () =>
    post(suppressions, organisation.liveKey, { email: 'ann@c.example' }, { 'Idempotency-Key': 'a' })
  await sql`alter table app.idempotency_keys rename to keys_away`
  isRefused(t, await add(), 'internal_error')
  await sql`alter table app.keys_away rename to idempotency_keys`
  t.strictSame(await listOf(sql, organisation), [])
  const retry = await add()
  t.strictSame([retry.status, retry.headers.get('idempotent-replayed')], [201, null])
})
