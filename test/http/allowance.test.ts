import t from 'tap'
import type { ErrorBody } from '../../src/errors.ts'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, errorOf, isRefused, post } from '../fixtures/http.ts'
import { acceptTogether } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const usedBy = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select emails_used, messages_accepted::integer, period_start, period_end from app.allowances
    where organisation_id = core.decode_id('org', ${id})`
  return row as { emailsUsed: number; messagesAccepted: number; periodStart: Date; periodEnd: Date }
}

/** Returns so many different addresses. */
const people = (count: number, name = 'r') =>
  Array.from({ length: count }, (_, n) => `${name}${n}@c.example`)

t.test('the allowance counts each address of to, cc and bcc once', async (t) => {
  const cases = [
    [{ to: 'a@c.example' }, 1],
    [{ to: ['a@c.example', 'b@c.example'] }, 2],
    [{ to: 'a@c.example', cc: 'b@c.example', bcc: ['c@c.example'] }, 3],
    [{ to: ['a@c.example', 'a@c.example'], cc: 'a@c.example', bcc: 'a@c.example' }, 1],
    [{ to: ['a@c.example', 'Ann <A@C.EXAMPLE>'] }, 1],
    [{ to: 'a@bücher.example', cc: 'a@xn--bcher-kva.example' }, 1],
    [{ to: 'a@c.example', cc: [], bcc: [] }, 1],
    [{ to: people(50, 't'), cc: people(50, 'c'), bcc: people(50, 'b') }, 150],
  ] as const
  for (const [recipients, count] of cases) {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    const { status } = await post(`${base}/v1/emails`, liveKey, anEmail(domain, recipients))
    t.equal(status, 200)
    const { emailsUsed, messagesAccepted } = await usedBy(organisation)
    t.strictSame(
      [emailsUsed, messagesAccepted],
      [count, 1],
      JSON.stringify(recipients).slice(0, 80),
    )
  }
})

t.test(
  'an email whose recipients exceed the allowance is refused and nothing is queued',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 5 })
    const { liveKey, domain } = organisation
    const send = (count: number) =>
      post(`${base}/v1/emails`, liveKey, anEmail(domain, { to: people(count) }))
    isRefused(t, await send(6), 'plan_allowance_exceeded')
    t.equal((await send(3)).status, 200)
    const before = await traces(sql)
    isRefused(t, await send(3), 'plan_allowance_exceeded')
    t.strictSame(await traces(sql), before, 'nothing is stored')
    t.equal((await send(2)).status, 200, 'a smaller one still fits')
    isRefused(t, await send(1), 'plan_allowance_exceeded')
    t.equal((await usedBy(organisation)).emailsUsed, 5)
  },
)

t.test(
  'a plan without emails refuses every email, and a larger plan takes effect at once',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 0 })
    await createOrganisation(sql, { emailsIncluded: 1 })
    const send = () => post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain))
    isRefused(t, await send(), 'plan_allowance_exceeded')
    await sql`select ops.set_plan(${organisation.id}, 'plan-1')`
    t.equal((await send()).status, 200)
    isRefused(t, await send(), 'plan_allowance_exceeded')
    await sql`select ops.set_plan(${organisation.id}, 'plan-0')`
    isRefused(t, await send(), 'plan_allowance_exceeded')
  },
)

t.test('a batch beyond the allowance accepts the items that fit, in order', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 10 })
  const { liveKey, domain } = organisation
  const sizes = [4, 7, 3, 4, 2, 2, 1, 1]
  const fits = [true, false, true, false, true, false, true, false]
  const emails = sizes.map((size) => anEmail(domain, { to: people(size) }))
  const { status, json } = await post(`${base}/v1/emails/batch`, liveKey, { emails })
  t.equal(status, 200)
  t.strictSame(
    json.results.map(({ ok }: { ok: boolean }) => ok),
    fits,
  )
  const { periodEnd } = await usedBy(organisation)
  t.strictSame(
    json.results.flatMap(({ error }: { error?: ErrorBody }) => (error ? [error] : [])),
    [
      [7, 6],
      [4, 3],
      [2, 1],
      [1, 0],
    ].map(([needed, left]) =>
      errorOf(
        'plan_allowance_exceeded',
        undefined,
        `This email needs ${needed} of the plan's 10 emails, and ${left} ${left === 1 ? 'is' : 'are'} left until ${periodEnd.toISOString()}; nothing was queued.`,
      ),
    ),
  )
  t.equal((await usedBy(organisation)).emailsUsed, 10)
})

t.test(
  'items of a batch that are refused for other reasons use none of the allowance',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 3 })
    const { liveKey, domain } = organisation
    const emails = [
      anEmail('elsewhere.example', { to: people(3) }),
      {},
      anEmail(domain, { to: people(2) }),
      anEmail(domain, { to: people(2), templateId: 'tpl_1', text: undefined }),
      anEmail(domain),
      anEmail(domain),
    ]
    const { json } = await post(`${base}/v1/emails/batch`, liveKey, { emails })
    t.strictSame(
      json.results.map(({ error }: { error?: { code: string } }) => error?.code),
      [
        'domain_not_verified',
        'validation_error',
        undefined,
        'validation_error',
        undefined,
        'plan_allowance_exceeded',
      ],
    )
  },
)

t.test('calls of one transaction use the allowance in the order of their arrival', async (t) => {
  const ours = await createOrganisation(sql, { emailsIncluded: 3 })
  const theirs = await createOrganisation(sql, { emailsIncluded: 1 })
  const send = (organisation: TestOrganisation, key: string, count: number, mode?: 'test') => ({
    organisation,
    key,
    email: anEmail(organisation.domain, { to: people(count) }),
    ...(mode ? { mode } : {}),
  })
  const responses = await acceptTogether(sql, [
    send(ours, 'a', 2),
    send(theirs, 'a', 1),
    send(ours, 'b', 2),
    send(ours, 't', 50, 'test'),
    send(ours, 'c', 1),
    send(ours, 'a', 2),
    send(theirs, 'b', 1),
    send(ours, 'd', 1),
  ])
  const refused = 'plan_allowance_exceeded'
  t.strictSame(
    responses.map(({ code }) => code),
    [null, null, refused, null, null, null, refused, refused],
  )
  t.equal((await usedBy(ours)).emailsUsed, 3)
  t.equal((await usedBy(theirs)).emailsUsed, 1)
})

t.test('the first send after the end of a period begins the next period', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 2 })
  const { id, liveKey, domain } = organisation
  const send = () => post(`${base}/v1/emails`, liveKey, anEmail(domain))
  await send()
  await send()
  isRefused(t, await send(), 'plan_allowance_exceeded')

  // As if the organisation was created 100 days ago and sent nothing after its first month.
  await sql`
    update app.organisations set created_at = now() - interval '100 days'
    where id = core.decode_id('org', ${id})`
  await sql`
    update app.allowances
    set period_start = now() - interval '100 days', period_end = now() - interval '69 days'
    where organisation_id = core.decode_id('org', ${id})`
  t.equal((await send()).status, 200)
  const { emailsUsed, messagesAccepted, periodStart, periodEnd } = await usedBy(organisation)
  t.equal(emailsUsed, 1)
  t.equal(messagesAccepted, 3, 'the total of accepted messages is not reset')
  t.ok(periodStart <= new Date() && new Date() < periodEnd, 'the period is the current one')
  const [row] = await sql`
    select p.* from app.organisations o cross join lateral core.period_at(o.created_at, now()) p
    where o.id = core.decode_id('org', ${id})`
  t.strictSame(
    { periodStart: +periodStart, periodEnd: +periodEnd },
    { periodStart: +row?.periodStart, periodEnd: +row?.periodEnd },
    'months start on the day on which the organisation was created',
  )
  t.equal((await send()).status, 200)
  isRefused(t, await send(), 'plan_allowance_exceeded')
})

t.test('a refused send also begins the next period', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 1 })
  const { id, liveKey, domain } = organisation
  t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
  await sql`
    update app.allowances
    set period_start = now() - interval '1 month', period_end = now() - interval '1 second'
    where organisation_id = core.decode_id('org', ${id})`
  const tooMany = await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to: people(2) }))
  isRefused(t, tooMany, 'plan_allowance_exceeded')
  t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
  t.equal((await usedBy(organisation)).emailsUsed, 1)
})
