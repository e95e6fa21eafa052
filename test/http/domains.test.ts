import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post, request } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const UNKNOWN = 'dom_01h00000000000000000000000'

const add = (key: string, name: unknown, headers?: Record<string, string>) =>
  post(`${base}/v1/domains`, key, { name }, headers)
const verify = (key: string, id: string, body?: unknown) =>
  request('POST', `${base}/v1/domains/${id}/verify`, key, body)
const remove = (key: string, id: string) => request('DELETE', `${base}/v1/domains/${id}`, key)

t.test('a domain is added with the six records to publish', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { status, json } = await add(liveKey, 'shop.example')
  t.equal(status, 201)
  const token = json.id.slice('dom_'.length)
  const dkim = (selector: string) => ({
    purpose: 'dkim',
    type: 'CNAME',
    name: `${selector}._domainkey.shop.example`,
    value: `${selector}.${token}.dkim.postgram.test`,
    required: true,
    status: 'pending',
    found: [],
  })
  t.strictSame(json, {
    id: json.id,
    name: 'shop.example',
    status: 'pending',
    mailFromDomain: 'mail.shop.example',
    records: [
      dkim('pg1'),
      dkim('pg2'),
      dkim('pg3'),
      {
        purpose: 'mail_from_mx',
        type: 'MX',
        name: 'mail.shop.example',
        value: '10 mx.sandbox.postgram.test',
        required: true,
        status: 'pending',
        found: [],
      },
      {
        purpose: 'mail_from_spf',
        type: 'TXT',
        name: 'mail.shop.example',
        value: 'v=spf1 include:sandbox.postgram.test ~all',
        required: true,
        status: 'pending',
        found: [],
      },
      {
        purpose: 'dmarc',
        type: 'TXT',
        name: '_dmarc.shop.example',
        value: 'v=DMARC1; p=none;',
        required: false,
        status: 'pending',
        found: [],
      },
    ],
    verifiedAt: null,
    lastCheckedAt: json.lastCheckedAt,
    createdAt: json.createdAt,
  })
  t.match(json, { id: /^dom_[0-7][0-9a-hjkmnp-tv-z]{25}$/, lastCheckedAt: ISO, createdAt: ISO })
  t.strictSame((await get(`${base}/v1/domains/${json.id}`, liveKey)).json, json)
})

t.test('POST /v1/domains: a domain of the organisation gets 200 and is unchanged', async (t) => {
  const { liveKey, testKey } = await createOrganisation(sql)
  const first = await add(liveKey, 'held.example')
  const again = await add(testKey, 'HELD.example.')
  t.equal(again.status, 200)
  t.strictSame(again.json, first.json)
})

t.test('POST /v1/domains: a domain of another organisation is refused', async (t) => {
  const holder = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  t.equal((await add(holder.liveKey, 'taken.example')).status, 201)
  isRefused(t, await add(other.liveKey, 'taken.example'), 'already_exists')
  isRefused(t, await add(other.liveKey, holder.domain), 'already_exists')
  t.equal(
    (await add(other.liveKey, 'below.taken.example')).status,
    201,
    'a subdomain is another domain',
  )
})

t.test('POST /v1/domains: the plan limits new domains, not existing ones', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  await sql`select ops.create_plan('two', 'Two', 0, 100, 0, 2)`
  await sql`select ops.set_plan(${id}, 'two')`
  const { json } = await add(liveKey, 'second.example')
  isRefused(t, await add(liveKey, 'third.example'), 'plan_limit_reached')
  t.equal((await add(liveKey, 'second.example')).status, 200)
  await remove(liveKey, json.id)
  t.equal((await add(liveKey, 'third.example')).status, 201)
})

t.test('POST /v1/domains: an invalid name is refused with its problem', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const problem = 'must be a domain name, as example.com'
  for (const name of [
    '',
    ' ',
    'nodot',
    'a..example',
    '-a.example',
    'a-.example',
    'a_b.example',
    'https://a.example',
    'a.example/x',
    'x@a.example',
    'a.example:25',
    '1.2.3.4',
    '[::1]',
    'a%2eexample.com',
    'a b.example',
    'a\u0000.example',
    `${'a'.repeat(64)}.example`,
    `${'abcdefgh.'.repeat(30)}example`,
  ]) {
    isRefused(
      t,
      await add(liveKey, name),
      'validation_error',
      { name: [problem] },
      {
        name: JSON.stringify(name),
      },
    )
  }
  for (const name of ['com', 'co.za', 'github.io', 'example']) {
    const { json } = await add(liveKey, name)
    t.match(json.error.fields.name, [/must be a domain name|is a public suffix/], name)
  }
  for (const name of [null, 1, ['a.example'], {}]) {
    isRefused(t, await add(liveKey, name), 'validation_error', { name: ['must be a string'] })
  }
  isRefused(t, await post(`${base}/v1/domains`, liveKey, {}), 'validation_error', {
    name: ['is required'],
  })
  isRefused(
    t,
    await post(`${base}/v1/domains`, liveKey, { name: 'a.example', mailFromSubdomain: 'x' }),
    'validation_error',
    { mailFromSubdomain: ['unknown field'] },
  )
  const { json } = await get(`${base}/v1/domains`, liveKey)
  t.equal(json.data.length, 1, 'nothing was added')
})

t.test('domain names are stored in lower case and ASCII', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  t.match((await add(liveKey, 'Bücher.Example')).json, { name: 'xn--bcher-kva.example' })
  t.equal((await add(liveKey, 'xn--bcher-kva.example')).status, 200)
})

t.test('GET /v1/domains: lists the domains of the organisation, newest first', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  await add(liveKey, 'one.list.example')
  await add(liveKey, 'two.list.example')
  const { status, json } = await get(`${base}/v1/domains`, liveKey)
  t.equal(status, 200)
  t.same(
    json.data.map(({ name }: { name: string }) => name),
    ['two.list.example', 'one.list.example', domain],
  )
  const [row] = json.data
  isRefused(t, await get(`${base}/v1/domains/${row.id}`, other.liveKey), 'not_found')
})

t.test('verify: a domain whose records are found is verified and may send', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'ready.example')
  const email = anEmail('ready.example')
  isRefused(t, await post(`${base}/v1/emails`, liveKey, email), 'domain_not_verified')

  const checked = await verify(liveKey, json.id)
  t.equal(checked.status, 200)
  t.match(checked.json, { id: json.id, status: 'verified', verifiedAt: ISO })
  for (const record of checked.json.records) {
    t.match(record, { status: 'verified', found: [record.value] })
  }
  t.ok(checked.json.lastCheckedAt >= json.lastCheckedAt)
  t.equal((await post(`${base}/v1/emails`, liveKey, email)).status, 200)
})

t.test('verify: missing and wrong records are shown', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const missing = await add(liveKey, 'missing.example.test')
  const gone = await verify(liveKey, missing.json.id)
  t.match(gone.json, { status: 'pending', verifiedAt: null })
  for (const record of gone.json.records) t.match(record, { status: 'missing', found: [] })

  const wrong = await add(liveKey, 'wrong.example.test')
  const other = await verify(liveKey, wrong.json.id)
  t.equal(other.json.status, 'pending')
  for (const { status, found, value, required } of other.json.records) {
    if (!required) continue
    t.equal(status, 'mismatch')
    t.equal(found.length, 1)
    t.not(found[0], value)
  }
})

t.test('verify: the body is absent or an empty object', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'bodies.example')
  t.equal((await verify(liveKey, json.id)).status, 200)
  t.equal((await verify(liveKey, json.id, {})).status, 200)
  isRefused(t, await verify(liveKey, json.id, { force: true }), 'validation_error', {
    force: ['unknown field'],
  })
  isRefused(t, await verify(liveKey, json.id, '{'), 'invalid_json')
})

t.test('DELETE: a deleted domain is not found, and sends from it are refused', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const { json } = await get(`${base}/v1/domains`, liveKey)
  const [{ id }] = json.data
  const { status, json: response } = await remove(liveKey, id)
  t.equal(status, 200)
  t.strictSame(response, { id, deleted: true })
  isRefused(t, await post(`${base}/v1/emails`, liveKey, anEmail(domain)), 'domain_not_verified')
  isRefused(t, await remove(liveKey, id), 'not_found')
  isRefused(t, await get(`${base}/v1/domains/${id}`, liveKey), 'not_found')
  t.same((await get(`${base}/v1/domains`, liveKey)).json, { data: [] })
  const other = await createOrganisation(sql)
  t.equal((await add(other.liveKey, domain)).status, 201, 'another organisation can add it')
})

t.test('malformed domain IDs and those of other organisations are not found', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const { json } = await add(other.liveKey, 'others.example')
  for (const id of [
    UNKNOWN,
    json.id,
    'dom_1',
    'em_01h00000000000000000000000',
    '%27',
    'x'.repeat(500),
  ]) {
    isRefused(t, await get(`${base}/v1/domains/${id}`, liveKey), 'not_found', undefined, {
      name: `GET ${id}`,
    })
    isRefused(t, await verify(liveKey, id), 'not_found', undefined, { name: `verify ${id}` })
    isRefused(t, await remove(liveKey, id), 'not_found', undefined, { name: `DELETE ${id}` })
  }
  t.equal((await get(`${base}/v1/domains/${json.id}`, other.liveKey)).status, 200)
})

t.test('domains can be added, verified and deleted while the organisation is paused', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  await sql`select ops.pause(${id}, 'review')`
  const { status, json } = await add(liveKey, 'paused.example')
  t.equal(status, 201)
  t.equal((await verify(liveKey, json.id)).json.status, 'verified')
  t.equal((await remove(liveKey, json.id)).status, 200)
})

t.test(
  'an Idempotency-Key replays the first response, although the domain has changed',
  async (t) => {
    const { liveKey } = await createOrganisation(sql)
    const key = { 'Idempotency-Key': 'add-1' }
    const first = await add(liveKey, 'replayed.example', key)
    await verify(liveKey, first.json.id)
    const again = await add(liveKey, 'replayed.example', key)
    t.equal(again.status, 201)
    t.equal(again.text, first.text)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    isRefused(t, await add(liveKey, 'another.example', key), 'idempotency_conflict')
    isRefused(
      t,
      await post(`${base}/v1/emails`, liveKey, anEmail('replayed.example'), key),
      'idempotency_conflict',
    )
    const path = `${base}/v1/domains/${first.json.id}/verify`
    const checked = await post(path, liveKey, {}, { 'Idempotency-Key': 'check-1' })
    const replayed = await post(path, liveKey, {}, { 'Idempotency-Key': 'check-1' })
    t.equal(replayed.text, checked.text)
    t.equal(replayed.headers.get('idempotent-replayed'), 'true')
  },
)

t.test('a refused domain call releases its Idempotency-Key', async (t) => {
  const holder = await createOrganisation(sql)
  const { liveKey } = await createOrganisation(sql)
  const key = { 'Idempotency-Key': 'add-2' }
  const { json } = await add(holder.liveKey, 'released.example')
  isRefused(t, await add(liveKey, 'released.example', key), 'already_exists')
  await remove(holder.liveKey, json.id)
  const { status, headers } = await add(liveKey, 'released.example', key)
  t.equal(status, 201)
  t.equal(headers.get('idempotent-replayed'), null)
})

t.test('ops.domains shows each record and what was found', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'wrong-operator.example')
  await verify(liveKey, json.id)
  const rows = await sql`
    select purpose, type, status, found from ops.domain_records where domain_id = ${json.id} order by name, type`
  t.same(
    rows.map(({ purpose, status }) => [purpose, status]),
    [
      ['dmarc', 'mismatch'],
      ['mail_from_mx', 'mismatch'],
      ['mail_from_spf', 'mismatch'],
      ['dkim', 'mismatch'],
      ['dkim', 'mismatch'],
      ['dkim', 'mismatch'],
    ],
  )
  t.same(rows[1]?.found, ['10 mx.elsewhere.example'])
})
