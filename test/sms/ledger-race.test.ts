import t from 'tap'
import { createDatabase, meetAt } from '../fixtures/database.ts'
import { post } from '../fixtures/http.ts'
import { acceptSmsTogether } from '../fixtures/messages.ts'
import {
  createPayer,
  grant,
  ledgerOf,
  moneyOf,
  reject,
  smsOf,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'

const { url, sql } = await createDatabase()
const bases = (await Promise.all([spawnService(url, 'api'), spawnService(url, 'api')])).map(
  ({ base }) => base,
)

t.test('refunds during 500 sends over two processes can be spent again completely', async (t) => {
  const organisation = await createPayer(sql, { included: 40, credits: 260 })
  const accepted: string[] = []
  const refunds: Promise<number>[] = []
  const answers = await Promise.all(
    Array.from({ length: 500 }, async (_, n) => {
      const answer = await post(`${bases[n % 2]}/v1/sms`, organisation.liveKey, smsOf(1))
      if (answer.status !== 200) return answer.status
      accepted.push(answer.json.id)
      // Two at a time ask for the same messages to be given back.
      if (accepted.length % 20 === 0) {
        const ids = accepted.slice(-5)
        for (let twice = 0; twice < 2; twice++) {
          refunds.push(reject(sql, ids))
        }
        t.same(await unbalancedLedgers(sql), [])
      }
      return answer.status
    }),
  )
  const refunded = (await Promise.all(refunds)).reduce((sum, count) => sum + count, 0)
  t.ok(answers.every((status) => status === 200 || status === 402))
  t.ok(refunded > 0)
  const { smsUsed, smsCredits } = await moneyOf(sql, organisation)
  t.equal(smsUsed + 260 - smsCredits, accepted.length - refunded, 'what was not given back is paid')
  const entries = await ledgerOf(sql, organisation)
  t.equal(entries.filter(({ kind }) => kind === 'refund').length, refunded)
  t.same(await unbalancedLedgers(sql), [])
  let more = 0
  while ((await post(`${bases[0]}/v1/sms`, organisation.liveKey, smsOf(1))).status === 200)
    more += 1
  t.equal(more, 300 - (accepted.length - refunded), 'and all of the rest can be')
})

t.test('a concurrent refund and send run one after the other', async (t) => {
  for (let round = 0; round < 5; round++) {
    const organisation = await createPayer(sql, { credits: 1 })
    const send = () => post(`${bases[0]}/v1/sms`, organisation.liveKey, smsOf(1))
    const { json } = await send()
    const [, answer] = await meetAt(sql, organisation, 2, () =>
      Promise.all([reject(sql, [json.id]), send()]),
    )
    t.ok([200, 402].includes(answer.status))
    const { smsCredits } = await moneyOf(sql, organisation)
    t.equal(smsCredits, answer.status === 200 ? 0 : 1)
    t.same(await unbalancedLedgers(sql), [])
  }
})

t.test('two operators who take back the same credits: one is refused', async (t) => {
  const organisation = await createPayer(sql, { credits: 10 })
  const outcomes = await meetAt(sql, organisation, 2, () =>
    Promise.allSettled([grant(sql, organisation, -7), grant(sql, organisation, -7)]),
  )
  t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.match(await moneyOf(sql, organisation), { smsCredits: 3 })
})

t.test('concurrent accepts, refunds and grants do not deadlock', async (t) => {
  const payers = await Promise.all(
    Array.from({ length: 4 }, () => createPayer(sql, { included: 100_000, credits: 1000 })),
  )
  const work = Array.from({ length: 4 }, async (_, worker) => {
    for (let round = 0; round < 25; round++) {
      // Each begins with another organisation.
      const order = [...payers.slice(worker), ...payers.slice(0, worker)]
      const answers = await acceptSmsTogether(
        sql,
        order.map((organisation, n) => ({
          organisation,
          key: `${worker} ${round} ${n}`,
          isBatch: true,
          messages: [smsOf(1), smsOf(2)],
        })),
      )
      const ids = answers.map(({ body }) => JSON.parse(body ?? '').results[worker % 2].data.id)
      await Promise.all([
        reject(sql, ids),
        reject(sql, ids.toReversed()),
        ...payers.map((organisation) => grant(sql, organisation, 1)),
      ])
    }
  })
  await Promise.all(work)
  t.same(await unbalancedLedgers(sql), [])
  for (const organisation of payers) {
    const { accepted } = await moneyOf(sql, organisation)
    t.equal(accepted, 200)
    const refunds = (await ledgerOf(sql, organisation)).filter(({ kind }) => kind === 'refund')
    t.equal(refunds.length, 100)
  }
})
