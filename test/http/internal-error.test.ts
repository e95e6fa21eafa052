import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { type Answer, anEmail, get, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { liveKey, testKey, domain } = organisation
await liftRate(sql, organisation)

/** Runs `work` while an object of the database is renamed. */
async function without(kind: string, name: string, work: () => Promise<void>) {
  const [schema, bare] = name.split('.')
  await sql.unsafe(`alter ${kind} ${name} rename to ${bare}_away`)
  try {
    await work()
  } finally {
    await sql.unsafe(`alter ${kind} ${schema}.${bare}_away rename to ${bare}`)
  }
}

const emails = `${base}/v1/emails`
const withKey = (key: string) => ({ 'Idempotency-Key': key })

for (const [kind, name] of [
  ['function', 'api.accept_emails'],
  ['function', 'core.encode_id'],
  ['function', 'graphile_worker.add_jobs'],
  ['table', 'app.bodies'],
  ['table', 'app.idempotency_keys'],
  ['table', 'app.plans'],
] as const) {
  t.test(`an error in ${name}: 500, and nothing is stored`, async (t) => {
    const before = await traces(sql)
    const key = withKey(`a key for ${name}`)
    await without(kind, name, async () => {
      const single = await post(emails, liveKey, anEmail(domain), key)
      isRefused(t, single, 'internal_error', undefined, { name: 'a single send' })
      const batch = { emails: [anEmail(domain), {}] }
      isRefused(t, await post(`${emails}/batch`, liveKey, batch), 'internal_error', undefined, {
        name: 'a batch',
      })
    })
    t.strictSame(await traces(sql), before)

    const retry = await post(emails, liveKey, anEmail(domain), key)
    t.equal(retry.status, 200, 'the retry with the same key proceeds')
    t.equal(retry.headers.get('idempotent-replayed'), null)
  })
}

t.test(
  'an error is logged with the x-request-id of its response, without the request body',
  async (t) => {
    const { base, child } = await spawnService(url, 'api')
    let output = ''
    child.stdout?.on('data', (chunk: string) => {
      output += chunk
    })
    await sql`alter table app.messages add constraint no_poison check (subject <> 'Poison')`
    const body = anEmail(domain, { subject: 'Poison', to: 'secret.person@c.example' })
    const response = await post(`${base}/v1/emails`, liveKey, body)
    await sql`alter table app.messages drop constraint no_poison`
    isRefused(t, response, 'internal_error')
    const line = await until('the line in the log', async () =>
      output
        .split('\n')
        .slice(0, -1)
        .find((each) => each.includes('request failed')),
    )
    const requestId = response.headers.get('x-request-id')
    t.match(JSON.parse(line), { requestId, method: 'POST', route: '/v1/emails', level: 'error' })
    t.match(line, 'no_poison', 'with the cause')
    t.notMatch(line, 'secret.person')
    t.notMatch(line, liveKey)
  },
)

t.test('an error in admission: 500 without rate headers', async (t) => {
  await without('function', 'core.admit', async () => {
    for (const response of [
      await post(emails, liveKey, anEmail(domain)),
      await get(`${emails}/em_1`, liveKey),
      await get(`${base}/v1/unknown`, liveKey),
    ]) {
      isRefused(t, response, 'internal_error', undefined, { hasKey: false })
    }
    isRefused(t, await get(`${emails}/em_1`, 'malformed'), 'unauthorized')
  })
})

t.test('an error in a read: 500', async (t) => {
  await without('function', 'api.get_message', async () => {
    isRefused(t, await get(`${emails}/em_1`, liveKey), 'internal_error')
  })
  isRefused(t, await get(`${emails}/em_1`, liveKey), 'not_found')
})

t.test('of sends in one transaction only the one with the error fails', async (t) => {
  await sql`alter table app.messages add constraint no_poison check (subject <> 'Poison')`
  const before = await traces(sql)
  const subjects = Array.from({ length: 40 }, (_, n) => (n % 8 === 3 ? 'Poison' : `Fine ${n}`))
  const responses = await Promise.all(
    subjects.map((subject, n) =>
      post(emails, n % 2 ? liveKey : testKey, anEmail(domain, { subject })),
    ),
  )
  for (const [n, subject] of subjects.entries()) {
    const response = responses[n] as Answer
    if (subject === 'Poison') isRefused(t, response, 'internal_error')
    else t.equal(response.status, 200, subject)
  }
  const after = await traces(sql)
  t.strictSame(
    [after.messages - before.messages, after.bodies - before.bodies, after.keys - before.keys],
    [35, 15, 35],
    'bodies only of the live ones',
  )
  t.equal(after.jobs - before.jobs, 15, 'of the live ones')
  await sql`alter table app.messages drop constraint no_poison`
})

t.test('one error in a batch undoes the whole batch', async (t) => {
  await sql`alter table app.messages add constraint no_poison check (subject <> 'Poison')`
  const before = await traces(sql)
  const batch = { emails: [anEmail(domain), anEmail(domain, { subject: 'Poison' })] }
  const response = await post(`${emails}/batch`, liveKey, batch, withKey('poison'))
  isRefused(t, response, 'internal_error')
  t.strictSame(await traces(sql), before)
  await sql`alter table app.messages drop constraint no_poison`
  const retry = await post(`${emails}/batch`, liveKey, batch, withKey('poison'))
  t.strictSame([retry.status, retry.headers.get('idempotent-replayed')], [200, null])
})
