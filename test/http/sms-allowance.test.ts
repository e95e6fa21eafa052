import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, get, isRefused, post } from '../fixtures/http.ts'
import {
  createPayer,
  grant,
  ledgerOf,
  moneyOf,
  smsOf,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'], hasSandboxSms: true })

/** Not a sandbox number: those cost nothing beside a real provider. */
const to = '+27821234567'

const send = (key: string, segments: number, overrides = {}) =>
  post(`${base}/v1/sms`, key, smsOf(segments, { to, ...overrides }))

const sendBatch = (key: string, segments: number[], overrides = {}) =>
  post(`${base}/v1/sms/batch`, key, {
    messages: segments.map((count) => smsOf(count, { to, ...overrides })),
  })

/** The credits or the error code of each item of a batch. */
const outcomesOf = ({ json }: Answer) =>
  json.results.map(
    ({ data, error }: { data?: { credits: number }; error?: { code: string } }) =>
      data?.credits ?? error?.code,
  )

const statusOf = async (key: string, { json }: Answer) =>
  (await get(`${base}/v1/sms/${json.id}`, key)).json

t.test('SMS: segments come from the plan first, the rest from credits', async (t) => {
  const organisation = await createPayer(sql, { included: 5, credits: 4 })
  const { liveKey } = organisation
  const responses = [await send(liveKey, 3), await send(liveKey, 3), await send(liveKey, 3)]
  t.match(
    responses.map(({ json }) => json),
    [
      { status: 'queued', segments: 3, credits: 0, mode: 'live' },
      { status: 'queued', segments: 3, credits: 1, mode: 'live' },
      { status: 'queued', segments: 3, credits: 3, mode: 'live' },
    ],
  )
  isRefused(t, await send(liveKey, 1), 'insufficient_credits')
  t.same(await moneyOf(sql, organisation), { smsUsed: 5, smsCredits: 0, accepted: 3 })
  t.same(await ledgerOf(sql, organisation), [
    { kind: 'grant', credits: 4, included: 0, balance: 4 },
    { kind: 'sms', credits: 0, included: -3, balance: 4 },
    { kind: 'sms', credits: -1, included: -2, balance: 3 },
    { kind: 'sms', credits: -3, included: 0, balance: 0 },
  ])
  t.match(await statusOf(liveKey, responses[1] as Answer), { segments: 3, credits: 1 })
  t.equal(await grant(sql, organisation, 1), 1)
  t.match((await send(liveKey, 1)).json, { credits: 1 })
  t.same(await unbalancedLedgers(sql), [])
})

t.test('SMS: one that needs more than plan and credits is refused and takes nothing', async (t) => {
  const organisation = await createPayer(sql, { included: 2, credits: 2 })
  isRefused(t, await send(organisation.liveKey, 5), 'insufficient_credits')
  t.same(await moneyOf(sql, organisation), { smsUsed: 0, smsCredits: 2, accepted: 0 })
  t.match((await send(organisation.liveKey, 4)).json, { segments: 4, credits: 2 })
})

t.test(
  'SMS batch: pays in order, and every item after the first that does not fit fails',
  async (t) => {
    const organisation = await createPayer(sql, { included: 3, credits: 4 })
    const response = await sendBatch(organisation.liveKey, [2, 2, 1, 3, 1, 1])
    const short = 'insufficient_credits'
    t.same(outcomesOf(response), [0, 1, 1, short, short, short], 'smaller items as well')
    t.same(await moneyOf(sql, organisation), { smsUsed: 3, smsCredits: 2, accepted: 3 })
    t.same(outcomesOf(await sendBatch(organisation.liveKey, [1, 1, 1])), [1, 1, short])
    t.same(await moneyOf(sql, organisation), { smsUsed: 3, smsCredits: 0, accepted: 5 })
    t.same(await unbalancedLedgers(sql), [])
  },
)

t.test('SMS batch: invalid items pay nothing and do not affect later items', async (t) => {
  const organisation = await createPayer(sql, { credits: 2 })
  const response = await post(`${base}/v1/sms/batch`, organisation.liveKey, {
    messages: [
      smsOf(1, { to: 'nobody' }),
      smsOf(1, { to }),
      smsOf(2, { to, senderId: 'Stranger' }),
      smsOf(1, { to }),
    ],
  })
  t.same(outcomesOf(response), ['validation_error', 1, 'validation_error', 1])
})

t.test('scheduled SMS: is paid when it is accepted', async (t) => {
  const organisation = await createPayer(sql, { credits: 3 })
  const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
  const response = await send(organisation.liveKey, 2, { scheduledAt })
  t.match(response.json, { status: 'scheduled', segments: 2, credits: 2, mode: 'live' })
  t.match(await statusOf(organisation.liveKey, response), { status: 'scheduled', scheduledAt })
  t.same(await moneyOf(sql, organisation), { smsUsed: 0, smsCredits: 1, accepted: 0 })
  isRefused(t, await send(organisation.liveKey, 2, { scheduledAt }), 'insufficient_credits')
})

t.test('test SMS: pays nothing, and shows what a live one would pay', async (t) => {
  const organisation = await createPayer(sql, { included: 3, credits: 1 })
  const { liveKey, testKey } = organisation
  const before = await moneyOf(sql, organisation)
  for (let again = 0; again < 2; again++) {
    t.match((await send(testKey, 5)).json, { segments: 5, credits: 2, mode: 'test' })
    t.same(outcomesOf(await sendBatch(testKey, [2, 2, 1])), [0, 1, 1])
  }
  t.same(await moneyOf(sql, organisation), before)
  const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
  const scheduled = await send(testKey, 1, { scheduledAt })
  t.match(scheduled.json, { status: 'scheduled', credits: 0, mode: 'test' })
  const message = await statusOf(testKey, scheduled)
  t.match(message, { status: 'sent', scheduledAt, sentAt: message.createdAt })
  t.same(outcomesOf(await sendBatch(liveKey, [2, 2])), [0, 1])
  t.equal((await ledgerOf(sql, organisation)).length, 3)
})

t.test('SMS: a change to a smaller plan leaves the credits', async (t) => {
  const organisation = await createPayer(sql, { included: 4, credits: 2 })
  t.match((await send(organisation.liveKey, 3)).json, { credits: 0 })
  await createPayer(sql, { included: 1 })
  await sql`select ops.set_plan(${organisation.id}, 'plan-1000000-1')`
  t.match((await send(organisation.liveKey, 2)).json, { credits: 2 })
  isRefused(t, await send(organisation.liveKey, 1), 'insufficient_credits')
  await sql`select ops.set_plan(${organisation.id}, 'plan-1000000-4')`
  t.match((await send(organisation.liveKey, 1)).json, { credits: 0 })
  t.same(await unbalancedLedgers(sql), [])
})

t.test('SMS: 500 concurrent sends take exactly 300 credits', async (t) => {
  const organisation = await createPayer(sql, { credits: 300 })
  let isDone = false
  const watch = async () => {
    while (!isDone)
      t.same(await unbalancedLedgers(sql), [], 'the ledger equals the balances at every moment')
  }
  const watching = watch()
  const responses = await Promise.all(
    Array.from({ length: 500 }, (_, n) =>
      n % 50 === 0
        ? sendBatch(organisation.liveKey, Array(10).fill(1))
        : send(organisation.liveKey, 1),
    ),
  )
  isDone = true
  await watching
  const paid = responses.flatMap((response) =>
    response.json.results
      ? outcomesOf(response)
      : [response.json.credits ?? response.json.error.code],
  )
  t.equal(paid.filter((outcome) => outcome === 1).length, 300)
  t.equal(paid.filter((outcome) => outcome === 'insufficient_credits').length, paid.length - 300)
  t.same(await moneyOf(sql, organisation), { smsUsed: 0, smsCredits: 0, accepted: 300 })
  const ledger = await ledgerOf(sql, organisation)
  t.equal(ledger.length, 301)
  t.equal(
    ledger.reduce((sum, { credits }) => sum + credits, 0),
    0,
  )
  t.ok(ledger.every(({ balance }) => balance >= 0))
})

t.test('allowances and ledger: the tables refuse negative balances', async (t) => {
  const { id } = await createPayer(sql, { credits: 1 })
  const allowance = sql`
    update app.allowances set sms_credits = -1 where organisation_id = core.decode_id('org', ${id})`
  await t.rejects(allowance, { message: /allowances_sms_credits_not_negative/ })
  const entry = sql`
    insert into app.credit_ledger (organisation_id, kind, credits, balance, period_start, created_at)
    values (core.decode_id('org', ${id}), 'grant', -2, -1, now(), now())`
  await t.rejects(entry, { message: /credit_ledger_balance_not_negative/ })
})
