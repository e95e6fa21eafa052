import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post } from '../fixtures/http.ts'
import {
  createOrganisation,
  grant,
  smsOf,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startApiAt, startTestService } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const usageOf = async ({ liveKey }: TestOrganisation, at = base) =>
  (await get(`${at}/v1/usage`, liveKey)).json

t.test('GET /v1/usage: returns used, included and remaining units', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 10, smsIncluded: 3 })
  const { domain, liveKey, testKey } = organisation
  const before = await usageOf(organisation)
  t.match(before.period, { start: /^\d{4}-.*\.\d{3}Z$/, end: /^\d{4}-.*\.\d{3}Z$/ })
  t.strictSame(before, {
    plan: { id: 'plan-10-3', name: 'plan-10-3', priceRand: 0 },
    period: before.period,
    emails: { used: 0, included: 10, remaining: 10 },
    sms: { used: 0, included: 3, remaining: 3, credits: 0 },
    domains: { used: 1, included: 100 },
  })

  await grant(sql, organisation, 5)
  const to = ['a@c.example', 'b@c.example', 'c@c.example', 'd@c.example']
  for (const key of [liveKey, testKey]) {
    t.equal((await post(`${base}/v1/emails`, key, anEmail(domain, { to }))).status, 200)
    t.equal((await post(`${base}/v1/sms`, key, smsOf(4))).status, 200)
  }
  t.equal((await post(`${base}/v1/domains`, liveKey, { name: 'second.acme.example' })).status, 201)
  const after = await usageOf(organisation)
  t.strictSame(after, {
    ...before,
    emails: { used: 4, included: 10, remaining: 6 },
    sms: { used: 3, included: 3, remaining: 0, credits: 4 },
    domains: { used: 2, included: 100 },
  })
  const { status, json } = await get(`${base}/v1/usage`, testKey)
  t.equal(status, 200)
  t.strictSame(json, after, 'a test key gets the same, and its sends do not count')
})

t.test(
  'GET /v1/usage: a new plan takes effect at the next request, and a smaller one leaves 0',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 3 })
    const { id, domain, liveKey } = organisation
    await sql`select ops.create_plan('growth', 'Growth', 499, 1000, 50, 20)`
    await sql`select ops.create_plan('tiny', 'Tiny', 9, 2, 1, 0)`
    const send = () => post(`${base}/v1/emails`, liveKey, anEmail(domain))
    for (let n = 0; n < 3; n += 1) t.equal((await send()).status, 200)
    isRefused(t, await send(), 'plan_allowance_exceeded')

    await sql`select ops.set_plan(${id}, 'growth')`
    t.equal((await send()).status, 200)
    t.match(await usageOf(organisation), {
      plan: { id: 'growth', name: 'Growth', priceRand: 499 },
      emails: { used: 4, included: 1000, remaining: 996 },
      domains: { used: 1, included: 20 },
    })

    await sql`select ops.set_plan(${id}, 'tiny')`
    isRefused(t, await send(), 'plan_allowance_exceeded')
    t.match(await usageOf(organisation), {
      emails: { used: 4, included: 2, remaining: 0 },
      domains: { used: 1, included: 0 },
    })
  },
)

t.test('allowances reset at the end of the period, to the millisecond', async (t) => {
  const day31 = '2031-01-31T10:00:00.000Z'
  const lastMoment = '2031-02-28T09:59:59.999Z'
  const end = '2031-02-28T10:00:00.000Z'
  const organisation = await createOrganisation(sql, { emailsIncluded: 1 })
  const { id, domain, liveKey } = organisation
  await sql`
    with made as (
      update app.organisations set created_at = ${day31} where id = core.decode_id('org', ${id}) returning id
    )
    update app.allowances a set (period_start, period_end) = (select p.* from core.period_at(${day31}, ${day31}) p)
    from made m where a.organisation_id = m.id`
  const early = await startApiAt(sql, url, '2031-02-01T00:00:00.000Z')
  const late = await startApiAt(sql, url, lastMoment)
  const next = await startApiAt(sql, url, end)
  const send = (at: string) => post(`${at}/v1/emails`, liveKey, anEmail(domain))

  t.equal((await send(early.base)).status, 200)
  isRefused(t, await send(late.base), 'plan_allowance_exceeded')
  t.match(await usageOf(organisation, late.base), {
    period: { start: day31, end },
    emails: { used: 1, remaining: 0 },
  })

  const reset = { period: { start: end, end: '2031-03-31T10:00:00.000Z' } }
  t.match(
    await usageOf(organisation, next.base),
    { ...reset, emails: { used: 0, remaining: 1 } },
    'usage shows the new period before anything has begun it',
  )
  t.equal((await send(next.base)).status, 200)
  t.match(await usageOf(organisation, next.base), { ...reset, emails: { used: 1, remaining: 0 } })
})

t.test('the clock closes ended periods, the next send those that the clock missed', async (t) => {
  const begun = '2032-01-31T10:00:00.000Z'
  const make = async () => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 5 })
    await sql`
      with made as (
        update app.organisations set created_at = ${begun}
        where id = core.decode_id('org', ${organisation.id}) returning id
      )
      update app.allowances a
      set emails_used = 2, (period_start, period_end) = (select p.* from core.period_at(${begun}, ${begun}) p)
      from made m where a.organisation_id = m.id`
    return organisation
  }
  const closedOf = async ({ id }: TestOrganisation) =>
    (
      await sql<{ ended: string; emailsUsed: number; planId: string }[]>`
        select core.iso(c.period_end) as ended, c.emails_used, c.plan_id from app.closed_periods c
        where c.organisation_id = core.decode_id('org', ${id}) order by c.period_start`
    ).map(({ ended, emailsUsed, planId }) => [ended.slice(0, 10), emailsUsed, planId])
  const closed = [
    ['2032-02-29', 2, 'plan-5'],
    ['2032-03-31', 0, 'plan-5'],
    ['2032-04-30', 0, 'plan-5'],
  ]

  const idle = await make()
  const closePeriods = async (time: string) => {
    const [row] = await atTime(sql, time, (tx) => tx`select api.close_periods() as closed`)
    return row?.closed
  }
  await closePeriods('2032-02-29T09:59:59.999Z')
  t.same(await closedOf(idle), [])
  t.ok((await closePeriods('2032-05-01T00:00:00.000Z')) >= 3)
  t.same(await closedOf(idle), closed)
  t.equal(await closePeriods('2032-05-01T00:00:00.000Z'), 0, 'each period is closed once')

  const sender = await make()
  const { base } = await startApiAt(sql, url, '2032-05-01T00:00:00.000Z')
  await post(`${base}/v1/emails`, sender.liveKey, anEmail(sender.domain))
  t.same(await closedOf(sender), closed)
  t.match(await usageOf(sender, base), {
    period: { start: '2032-04-30T10:00:00.000Z', end: '2032-05-31T10:00:00.000Z' },
    emails: { used: 1 },
  })
})
