import t, { type Test } from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { type Answer, anEmail, get, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, holdSecond } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const processes = await Promise.all([spawnService(url, 'api'), spawnService(url, 'api')])
const [one, two] = processes.map(({ base }) => base) as [string, string]

t.test('x-ratelimit-remaining counts down over keys, endpoints and processes', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, testKey, domain } = organisation
  await holdSecond(sql, organisation, 0)
  const requests = [
    () => post(`${one}/v1/emails`, liveKey, anEmail(domain)),
    () => post(`${two}/v1/emails`, testKey, anEmail(domain)),
    () => get(`${one}/v1/emails/em_1`, testKey),
    () => post(`${two}/v1/emails/batch`, liveKey, { emails: [anEmail(domain), anEmail(domain)] }),
    () => get(`${one}/v1/unknown`, liveKey),
    () => post(`${two}/v1/emails`, liveKey, '{'),
  ]
  for (const [n, send] of requests.entries()) {
    const { headers } = await send()
    t.strictSame(
      [headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')],
      ['100', String(99 - n)],
    )
  }
})

t.test('the 101st request of a second is refused, whatever key or endpoint it has', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id, liveKey, testKey, domain } = organisation
  const [row] = await sql`select ops.create_api_key(${id}, 'live', '{read}') as key`
  await holdSecond(sql, organisation, 98)
  for (const remaining of ['1', '0']) {
    const { status, headers } = await post(`${one}/v1/emails`, liveKey, anEmail(domain))
    t.strictSame([status, headers.get('x-ratelimit-remaining')], [200, remaining])
  }
  const before = await traces(sql)
  const refused = [
    await post(`${two}/v1/emails`, liveKey, anEmail(domain)),
    await post(`${two}/v1/emails`, testKey, anEmail(domain)),
    await post(`${one}/v1/emails/batch`, liveKey, { emails: [anEmail(domain)] }),
    await get(`${one}/v1/emails/em_1`, row?.key),
    await get(`${two}/v1/unknown`, liveKey),
  ]
  for (const response of refused) {
    isRefused(t, response, 'rate_limited')
    t.equal(response.headers.get('x-ratelimit-remaining'), '0')
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
  const other = await createOrganisation(sql)
  const { status } = await post(`${one}/v1/emails`, other.liveKey, anEmail(other.domain))
  t.equal(status, 200, 'another organisation is not concerned')
})

/** Checks that `admitted` saw each number of remaining requests once, and that the other 50 responses are refusals. */
function isAdmittedToLimit(t: Test, responses: Answer[], admitted: Answer[]) {
  t.strictSame(
    admitted
      .map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
      .sort((a, b) => a - b),
    Array.from({ length: 100 }, (_, n) => n),
    'each saw another number',
  )
  const refused = responses.filter(({ status }) => status === 429)
  t.equal(refused.length, 50)
  isRefused(t, refused[0] as Answer, 'rate_limited')
}

t.test('of 150 concurrent requests to two processes exactly 100 are admitted', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, testKey } = organisation
  await holdSecond(sql, organisation, 0)
  const responses = await Promise.all(
    Array.from({ length: 150 }, (_, n) =>
      get(`${n % 2 ? one : two}/v1/emails/em_1`, n % 3 ? liveKey : testKey),
    ),
  )
  const through = responses.filter(({ status }) => status === 404)
  t.equal(through.length, 100)
  isAdmittedToLimit(t, responses, through)
})

t.test('of 150 concurrent sends with admitted keys exactly 100 are accepted', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id, liveKey, testKey, domain } = organisation
  for (const base of [one, two]) {
    for (const key of [liveKey, testKey]) t.equal((await get(`${base}/v1/usage`, key)).status, 200)
  }
  await holdSecond(sql, organisation, 0)
  const responses = await Promise.all(
    Array.from({ length: 150 }, (_, n) =>
      post(`${n % 2 ? one : two}/v1/emails`, n % 3 ? liveKey : testKey, anEmail(domain)),
    ),
  )
  const accepted = responses.filter(({ status }) => status === 200)
  isAdmittedToLimit(t, responses, accepted)
  const stored = await sql`
    select from app.messages where organisation_id = core.decode_id('org', ${id})`
  t.equal(stored.length, 100)
})

t.test('the next second has the full limit again', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  await holdSecond(sql, organisation, 1000)
  isRefused(t, await post(`${one}/v1/emails`, liveKey, anEmail(domain)), 'rate_limited')
  await sql`
    update app.request_counts set second = floor(extract(epoch from clock_timestamp())) - 1
    where organisation_id = core.decode_id('org', ${organisation.id})`
  // The first process remembers the refusal until the second ends.
  const { status, headers } = await post(`${two}/v1/emails`, liveKey, anEmail(domain))
  t.strictSame([status, headers.get('x-ratelimit-remaining')], [200, '99'])
})

t.test('a clock that is set back by an hour delays no request', async (t) => {
  const organisation = await createOrganisation(sql)
  await sql`
    insert into app.request_counts (organisation_id, second, requests)
    values (core.decode_id('org', ${organisation.id}), floor(extract(epoch from clock_timestamp())) + 3600, 100)`
  const send = () => get(`${one}/v1/emails/em_1`, organisation.liveKey)
  t.equal((await send()).headers.get('x-ratelimit-remaining'), '99')
})

t.test('a key that is unknown or revoked is not counted', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, testKey } = organisation
  await sql`select ops.revoke_api_key(${testKey})`
  await holdSecond(sql, organisation, 99)
  isRefused(t, await get(`${one}/v1/emails/em_1`, testKey), 'unauthorized')
  isRefused(t, await get(`${one}/v1/emails/em_1`, liveKey), 'not_found')
})

t.test('refusals of one kind are summed to a line a second in the log', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id, liveKey } = organisation
  await holdSecond(sql, organisation, 1000)
  const requests = 40
  for (let n = 0; n < requests; n++) await get(`${one}/v1/usage`, liveKey)
  await post(`${one}/v1/emails`, liveKey, '{}')
  const linesOf = (route: string) =>
    (processes[0]?.output() ?? '')
      .split('\n')
      .filter((line) => line.includes(id) && line.endsWith('}'))
      .map((line) => JSON.parse(line))
      .filter((line) => line.route === route)
  const counted = () => linesOf('/v1/usage').reduce((sum, { requests = 1 }) => sum + requests, 0)
  await until('all of them to be counted', async () => counted() === requests)
  const lines = linesOf('/v1/usage')
  t.match(lines[0], { msg: 'request', status: 429, code: 'rate_limited', organisation: id })
  // One line at once, then one for each second with further refusals.
  const seconds = (lines.at(-1).time - lines[0].time) / 1000
  t.ok(lines.length <= 2 + seconds, `${lines.length} lines in ${seconds} s`)
  t.equal(linesOf('/v1/emails').length, 1, 'another kind has its own line')
})
