import t from 'tap'
import { createDatabase, rolledBack, traces } from '../fixtures/database.ts'
import { anEmail, anSms, get, isRefused, lacksScope, post, request } from '../fixtures/http.ts'
import { createOrganisation, holdSecond } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const createKey = async (organisation: string, mode: string, scopes: string[]) => {
  const [row] = await sql`select ops.create_api_key(${organisation}, ${mode}, ${scopes}) as key`
  return row?.key as string
}

t.test('a missing, malformed or unknown key gets 401 at every endpoint', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const before = await traces(sql)
  const secret = liveKey.slice('sk_live_'.length)
  const values = [
    undefined,
    '',
    'Bearer',
    'Bearer sk_live_',
    `Bearer sk_live_${'0'.repeat(64)}`,
    `Bearer sk_live_${secret}0`,
    `Bearer sk_live_${secret.slice(0, -1)}`,
    `Bearer sk_test_${secret}`,
    `Bearer ${secret}`,
    `Bearer ${liveKey.toUpperCase()}`,
    `Bearer ${liveKey} and more`,
    `Bearer ${liveKey},${liveKey}`,
    `Bearer "${liveKey}"`,
    `Basic ${liveKey}`,
    liveKey,
    `Bearer sk_live_${'x'.repeat(4000)}`,
  ]
  for (const value of values) {
    const headers: Record<string, string> = value === undefined ? {} : { Authorization: value }
    for (const [method, path, body] of [
      ['POST', '/v1/emails', anEmail(domain)],
      ['POST', '/v1/emails/batch', { emails: [anEmail(domain)] }],
      ['GET', '/v1/emails/em_00000000000000000000000000', undefined],
    ] as const) {
      const response = await request(method, base + path, null, body, headers)
      isRefused(t, response, 'unauthorized', undefined, {
        name: `${method} ${path} with ${value?.slice(0, 100)}`,
      })
    }
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('the scheme of the Authorization header may be in any case', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
    const headers = { Authorization: `${scheme} ${liveKey}` }
    const response = await request('POST', `${base}/v1/emails`, null, anEmail(domain), headers)
    t.equal(response.status, 200, scheme)
  }
})

t.test(
  'a revoked key is refused at the next request, also the last key of an organisation',
  async (t) => {
    const { liveKey, testKey, domain } = await createOrganisation(sql)
    const send = (key: string) => post(`${base}/v1/emails`, key, anEmail(domain))
    t.equal((await send(liveKey)).status, 200)

    await sql`select ops.revoke_api_key(${liveKey})`
    isRefused(t, await send(liveKey), 'unauthorized')
    t.equal((await send(testKey)).status, 200, 'another key of the organisation still works')

    await sql`select ops.revoke_api_key(${testKey})`
    isRefused(t, await send(testKey), 'unauthorized')
    isRefused(t, await send(liveKey), 'unauthorized')
  },
)

t.test(
  'a suspended organisation is refused at every endpoint from the next request on',
  async (t) => {
    const { id, liveKey, testKey, domain } = await createOrganisation(sql)
    const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    const before = await traces(sql)

    await sql`select ops.suspend(${id}, 'did not pay')`
    for (const key of [liveKey, testKey]) {
      isRefused(t, await post(`${base}/v1/emails`, key, anEmail(domain)), 'org_suspended')
      isRefused(
        t,
        await post(`${base}/v1/emails/batch`, key, { emails: [anEmail(domain)] }),
        'org_suspended',
      )
      isRefused(t, await get(`${base}/v1/emails/${json.id}`, key), 'org_suspended')
      isRefused(t, await get(`${base}/v1/nothing/here`, key), 'org_suspended')
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')

    await sql`select ops.reinstate(${id})`
    t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
  },
)

t.test('a suspended organisation over the rate limit gets 429, within it 403', async (t) => {
  const organisation = await createOrganisation(sql)
  await sql`select ops.suspend(${organisation.id}, 'did not pay')`
  await holdSecond(sql, organisation, 99)
  const send = () => post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain))
  isRefused(t, await send(), 'org_suspended')
  isRefused(t, await send(), 'rate_limited')
})

t.test('a 401 response has WWW-Authenticate: Bearer', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const unknown = await get(`${base}/v1/usage`, null)
  t.strictSame([unknown.status, unknown.headers.get('www-authenticate')], [401, 'Bearer'])
  const missing = await get(`${base}/v1/emails/em_1`, liveKey)
  t.strictSame([missing.status, missing.headers.get('www-authenticate')], [404, null])
})

t.test(
  'a paused organisation reads and sends with test keys, but not with live keys',
  async (t) => {
    const { id, liveKey, testKey, domain } = await createOrganisation(sql)
    const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    const before = await traces(sql)

    await sql`select ops.pause(${id}, 'complaints')`
    isRefused(t, await post(`${base}/v1/emails`, liveKey, anEmail(domain)), 'org_paused')
    const batch = { emails: [anEmail(domain), anEmail(domain)] }
    isRefused(t, await post(`${base}/v1/emails/batch`, liveKey, batch), 'org_paused')
    t.strictSame(await traces(sql), before, 'nothing is stored')
    t.equal((await get(`${base}/v1/emails/${json.id}`, liveKey)).status, 200)
    t.equal((await get(`${base}/v1/emails/${json.id}`, testKey)).status, 200)
    t.equal((await post(`${base}/v1/emails`, testKey, anEmail(domain))).status, 200)

    await sql`select ops.resume(${id})`
    t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
  },
)

t.test('a key without the scope of an endpoint gets 403 there', async (t) => {
  const { id, domain } = await createOrganisation(sql)
  const reader = await createKey(id, 'live', ['read', 'sms:send', 'domains:write'])
  const sender = await createKey(id, 'live', ['emails:send', 'sms:send', 'domains:write'])
  const batch = { emails: [anEmail(domain)] }
  for (const response of [
    await post(`${base}/v1/emails`, reader, anEmail(domain)),
    await post(`${base}/v1/emails/batch`, reader, batch),
  ]) {
    isRefused(t, response, 'insufficient_scope', undefined, { words: lacksScope('emails:send') })
  }
  const { json } = await post(`${base}/v1/emails`, sender, anEmail(domain))
  const response = await get(`${base}/v1/emails/${json.id}`, sender)
  isRefused(t, response, 'insufficient_scope', undefined, { words: lacksScope('read') })
  t.equal((await get(`${base}/v1/emails/${json.id}`, reader)).status, 200)
})

t.test('every response has a different x-request-id', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const responses = [
    await post(`${base}/v1/emails`, liveKey, anEmail(domain)),
    await post(`${base}/v1/emails`, liveKey, anEmail(domain)),
    await post(`${base}/v1/emails`, liveKey, '{'),
    await post(`${base}/v1/emails/batch`, liveKey, { emails: [anEmail(domain)] }),
    await get(`${base}/v1/emails/em_1`, liveKey),
    await get(`${base}/v1/emails/em_1`, null),
    await get(`${base}/v1/unknown`, liveKey),
    await get(`${base}/unknown`, null),
    await get(`${base}/docs/errors`, null),
    await get(`${base}/healthz`, null),
    await get(`${base}/readyz`, null),
    await request('HEAD', `${base}/docs/errors`, null),
    await request('HEAD', `${base}/v1/emails`, liveKey),
  ]
  const ids = responses.map(({ headers }) => headers.get('x-request-id') ?? '')
  for (const id of ids) t.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  t.equal(new Set(ids).size, responses.length)
})

/** Runs `work` while the database lacks a function. */
async function without(name: string, work: () => Promise<void>) {
  await sql.unsafe(`alter function api.${name} rename to ${name}_away`)
  await work().finally(() => sql.unsafe(`alter function api.${name}_away rename to ${name}`))
}

t.test('a single send of a key admitted lately calls api.admit no more', async (t) => {
  const { liveKey, testKey, domain } = await createOrganisation(sql)
  for (const key of [liveKey, testKey]) t.equal((await get(`${base}/v1/usage`, key)).status, 200)
  const large = anEmail(domain, { html: 'x'.repeat(80_000) })
  await without('admit', async () => {
    for (const key of [liveKey, testKey]) {
      for (const [path, body] of [
        ['/v1/emails', anEmail(domain)],
        ['/v1/sms', anSms()],
      ] as const) {
        const { status, headers } = await post(base + path, key, body)
        t.equal(status, 200, path)
        t.match(headers.get('x-ratelimit-remaining'), /^\d+$/)
      }
    }
    for (const [path, body] of [
      ['/v1/emails/batch', { emails: [anEmail(domain)] }],
      ['/v1/emails', large],
    ] as const) {
      isRefused(t, await post(base + path, liveKey, body), 'internal_error', undefined, {
        hasKey: false,
      })
    }
  })
  await without('admit_calls', async () => {
    t.equal((await post(`${base}/v1/emails`, liveKey, large)).status, 200, 'a large body')
    const other = await createOrganisation(sql)
    const first = await post(`${base}/v1/emails`, other.liveKey, anEmail(other.domain))
    t.equal(first.status, 200, 'the first request of a key')
  })
})

t.test(
  'a send counts for the organisation and mode that its key has in the database',
  async (t) => {
    const one = await createOrganisation(sql)
    const other = await createOrganisation(sql)
    const send = (domain: string) => post(`${base}/v1/emails`, one.liveKey, anEmail(domain))
    t.equal((await send(one.domain)).status, 200)
    const isOfKey = sql`sha256 = sha256(convert_to(${one.liveKey}, 'UTF8'))`
    await sql`update app.api_keys set organisation_id = core.decode_id('org', ${other.id}) where ${isOfKey}`
    const moved = await send(other.domain)
    t.match([moved.status, moved.json.mode], [200, 'live'])
    t.equal((await get(`${base}/v1/emails/${moved.json.id}`, other.testKey)).status, 200)
    isRefused(t, await send(one.domain), 'domain_not_verified', undefined, {
      words: `${one.domain} is not verified for this organisation; add the domain, or send from a verified one.`,
    })
    await sql`update app.api_keys set mode = 'test' where ${isOfKey}`
    const test = await send(other.domain)
    t.match([test.status, test.json.mode], [200, 'test'])
  },
)

t.test("a caller's x-request-id is ignored", async (t) => {
  const { headers } = await request('GET', `${base}/healthz`, null, undefined, {
    'x-request-id': 'chosen',
  })
  t.match(headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
})

t.test('every authenticated response has the rate headers, whatever its status', async (t) => {
  const { id, liveKey, domain } = await createOrganisation(sql)
  const reader = await createKey(id, 'live', ['read'])
  const responses = [
    await post(`${base}/v1/emails`, liveKey, anEmail(domain)),
    await post(`${base}/v1/emails`, liveKey, ''),
    await post(`${base}/v1/emails`, liveKey, {}),
    await post(`${base}/v1/emails`, liveKey, anEmail('other.example')),
    await post(`${base}/v1/emails`, reader, anEmail(domain)),
    await post(`${base}/v1/emails/batch`, liveKey, { emails: [{}] }),
    await get(`${base}/v1/emails/em_1`, liveKey),
    await get(`${base}/v1/unknown`, liveKey),
  ]
  t.strictSame(
    responses.map(({ status }) => status),
    [200, 400, 422, 403, 403, 200, 404, 404],
  )
  for (const { status, headers } of responses) {
    t.equal(headers.get('x-ratelimit-limit'), '100', `limit with ${status}`)
    t.match(headers.get('x-ratelimit-remaining'), /^\d+$/, `remaining with ${status}`)
    t.equal(headers.get('retry-after'), null, `no Retry-After with ${status}`)
  }
})

t.test('a key records the UTC day of its last use, and no request waits for that', async (t) => {
  const { id, liveKey, testKey } = await createOrganisation(sql)
  const usedOn = async () => {
    const rows = await sql<{ prefix: string; day: string | null }[]>`
      select prefix, last_used_on::text as day from ops.api_keys where organisation = ${id}`
    return [liveKey, testKey].map((key) => rows.find(({ prefix }) => key.startsWith(prefix))?.day)
  }
  const [today] = await sql<{ day: string }[]>`select (now() at time zone 'UTC')::date::text as day`
  const ask = () => get(`${base}/v1/usage`, liveKey)
  t.same(await usedOn(), [null, null])
  t.equal((await ask()).status, 200)
  t.same(await usedOn(), [today?.day, null])
  await sql`update app.api_keys set last_used_on = '2026-01-01' where sha256 = sha256(convert_to(${liveKey}, 'UTF8'))`
  await sql.begin(async (tx) => {
    await tx`select from app.api_keys where sha256 = sha256(convert_to(${liveKey}, 'UTF8')) for update`
    t.equal((await ask()).status, 200)
  })
  t.same(await usedOn(), ['2026-01-01', null])
  t.equal((await ask()).status, 200)
  t.same(await usedOn(), [today?.day, null])
})

t.test(
  'the commit that records the use of a key does not wait for the disk or a standby',
  async (t) => {
    const { liveKey } = await createOrganisation(sql)
    await rolledBack(sql, async (tx) => {
      await tx`set local synchronous_commit = on`
      const admitted = await tx`
      select from api.admit(array[encode(sha256(convert_to(${liveKey}, 'UTF8')), 'hex')])`
      t.equal(admitted.length, 1)
      t.match(
        await tx`select last_used_on from app.api_keys where sha256 = sha256(convert_to(${liveKey}, 'UTF8'))`,
        [{ lastUsedOn: Date }],
      )
      t.same([...(await tx`show synchronous_commit`)], [{ synchronousCommit: 'off' }])
    })
  },
)
