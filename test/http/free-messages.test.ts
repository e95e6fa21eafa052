import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, anSms, errorOf, post } from '../fixtures/http.ts'
import { createOrganisationAt } from '../fixtures/messages.ts'
import type { TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

// Test messages and sandbox messages beside a real provider cost nothing, so a plan limits them by the day.

const { url, sql } = await createDatabase()
const time = '2026-03-04T22:30:00Z'
const clock = { 'postgram.now': time }
await atTime(sql, time, (tx) => tx`select api.make_partitions()`)
/** Treats sandbox recipients as beside real providers. */
const { base } = await startTestService(url, {
  roles: ['api'],
  hasSandboxMessages: true,
  hasSandboxSms: true,
  clock,
})

const SECONDS_TO_MIDNIGHT = 90 * 60
const refusalOf = (limit: number) =>
  errorOf(
    'rate_limited',
    undefined,
    `The plan allows ${limit} test and sandbox messages a day; retry after 00:00 UTC.`,
  )

async function anOrganisation(limit: number) {
  const organisation = await createOrganisationAt(sql, time)
  await sql`select ops.create_plan(${`tests-${organisation.id.slice(-20)}`}, 'Few tests', 0, 100, 100, 100, ${limit})`
  await sql`select ops.set_plan(${organisation.id}, ${`tests-${organisation.id.slice(-20)}`})`
  return organisation
}

const testMessagesOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select a.test_messages, a.test_day::text from app.allowances a
    where a.organisation_id = core.decode_id('org', ${id})`
  return [row?.testMessages, row?.testDay]
}

t.test(
  'test messages of both channels beyond the limit of a day get 429 until midnight',
  async (t) => {
    const organisation = await anOrganisation(2)
    const { testKey, domain } = organisation
    const email = () => post(`${base}/v1/emails`, testKey, anEmail(domain))
    const sms = () => post(`${base}/v1/sms`, testKey, anSms())
    t.equal((await email()).status, 200)
    t.equal((await sms()).status, 200)
    const before = await traces(sql)
    for (const send of [email, sms]) {
      const { status, headers, json } = await send()
      t.strictSame([status, json], [429, { error: refusalOf(2) }])
      t.equal(headers.get('retry-after'), String(SECONDS_TO_MIDNIGHT))
    }
    t.strictSame(await traces(sql), before, 'a refused message stores nothing')
    t.equal(
      (
        await post(
          `${base}/v1/emails`,
          organisation.liveKey,
          anEmail(domain, { to: 'a@c.example' }),
        )
      ).status,
      200,
    )
    t.strictSame(
      await testMessagesOf(organisation),
      [2, '2026-03-04'],
      'a live message does not count',
    )
  },
)

t.test(
  'sandbox messages beside a real provider count for the limit of test messages',
  async (t) => {
    const organisation = await anOrganisation(3)
    const { liveKey, testKey, domain } = organisation
    t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
    t.equal((await post(`${base}/v1/sms`, liveKey, anSms())).status, 200)
    t.equal((await post(`${base}/v1/emails`, testKey, anEmail(domain))).status, 200)
    const email = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    t.strictSame([email.status, email.json.error], [429, refusalOf(3)])
    const sms = await post(`${base}/v1/sms`, liveKey, anSms())
    t.strictSame([sms.status, sms.json.error], [429, refusalOf(3)])
  },
)

t.test(
  'batch items beyond the limit of test messages fail, earlier ones are accepted',
  async (t) => {
    for (const [path, list, item] of [
      ['/v1/emails', 'emails', (domain: string) => anEmail(domain)],
      ['/v1/sms', 'messages', () => anSms()],
    ] as const) {
      const organisation = await anOrganisation(3)
      const { testKey, domain } = organisation
      const good = item(domain)
      const before = await traces(sql)
      const batch = { [list]: [good, {}, good, good, good, {}, good] }
      const { status, json } = await post(`${base}${path}/batch`, testKey, batch)
      t.equal(status, 200)
      t.strictSame(
        json.results.map(
          ({ ok, error }: { ok: boolean; error: { code: string } }) => ok || error.code,
        ),
        [true, 'validation_error', true, true, 'rate_limited', 'validation_error', 'rate_limited'],
      )
      t.strictSame(json.results[4].error, refusalOf(3))
      t.strictSame(await testMessagesOf(organisation), [3, '2026-03-04'])
      const after = await traces(sql)
      t.strictSame(after, { ...before, messages: before.messages + 3, keys: before.keys + 1 })
      await post(`${base}${path}/batch`, testKey, batch)
      t.strictSame(await traces(sql), after, 'a batch without an accepted item stores nothing')
    }
  },
)

t.test('the limit of test messages restarts at midnight UTC', async (t) => {
  const organisation = await anOrganisation(1)
  const send = () => post(`${base}/v1/emails`, organisation.testKey, anEmail(organisation.domain))
  t.equal((await send()).status, 200)
  t.equal((await send()).status, 429)
  await sql`
    update app.allowances set test_day = '2026-03-03', test_messages = 1
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.equal((await send()).status, 200)
  t.strictSame(await testMessagesOf(organisation), [1, '2026-03-04'])
})

t.test('concurrent test messages do not exceed their limit', async (t) => {
  const organisation = await anOrganisation(5)
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      n % 2
        ? post(`${base}/v1/emails`, organisation.testKey, anEmail(organisation.domain))
        : post(`${base}/v1/sms`, organisation.testKey, anSms()),
    ),
  )
  t.equal(responses.filter(({ status }) => status === 200).length, 5)
  t.equal(responses.filter(({ status }) => status === 429).length, 15)
})

t.test(
  'with the sandbox as provider its messages are live ones, with bodies and without a limit',
  async (t) => {
    const { base } = await startTestService(url, { roles: ['api'] })
    const { liveKey, domain } = await anOrganisation(0)
    const before = await traces(sql)
    t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
    t.equal((await post(`${base}/v1/sms`, liveKey, anSms())).status, 200)
    const { bodies } = await traces(sql)
    t.equal(bodies, before.bodies + 2)
  },
)

t.test('a plan allows 10 000 test messages a day unless an operator says otherwise', async (t) => {
  await sql`select ops.create_plan('plain', 'Plain', 0, 1, 1, 1)`
  const allowed = async () =>
    (await sql`select test_messages_daily from ops.plans where id = 'plain'`)[0]?.testMessagesDaily
  t.equal(await allowed(), 10_000)
  await sql`select ops.set_plan_terms('plain', test_messages_daily => 7)`
  t.equal(await allowed(), 7)
  await t.rejects(sql`select ops.set_plan_terms('plain', test_messages_daily => -1)`, {
    message: 'the price and the allowances must be 0 or more',
  })
})
