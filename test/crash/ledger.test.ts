import t from 'tap'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { type Answer, post } from '../fixtures/http.ts'
import {
  createPayer,
  ledgerOf,
  moneyOf,
  reject,
  smsOf,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

/** At least; more on a machine on which the steps meanwhile take longer. */
const SENDS = 500
const CALLERS = 20

/** Every third call is a batch of three; each call has its own key. */
const make = (base: string, { liveKey }: TestOrganisation, n: number): Promise<Answer> => {
  const headers = { 'Idempotency-Key': `send ${n}` }
  return n % 3 === 0
    ? post(`${base}/v1/sms/batch`, liveKey, { messages: [smsOf(1), smsOf(1), smsOf(1)] }, headers)
    : post(`${base}/v1/sms`, liveKey, smsOf(1), headers)
}

const idsOf = ({ json }: Answer): string[] =>
  (json.results ?? [{ data: json }]).flatMap(
    ({ data }: { data?: { id?: string } }) => data?.id ?? [],
  )

t.test('one of two API processes killed: 300 credits are spent exactly', async (t) => {
  const organisation = await createPayer(sql, { included: 30, credits: 270 })
  const [doomed, survivor] = await Promise.all([spawnService(url, 'api'), spawnService(url, 'api')])
  const accepted = new Map<number, string[]>()
  const cutOff: number[] = []
  const refunds: Promise<number>[] = []
  let isKilled = false
  let underWay = 0

  const caller = async (first: number) => {
    for (let n = first; n < SENDS || !isKilled; n += CALLERS) {
      const isDoomed = n % 2 === 0 && !isKilled
      if (isDoomed) underWay += 1
      const answer = await make(isDoomed ? doomed.base : survivor.base, organisation, n).catch(
        () => null,
      )
      if (isDoomed) underWay -= 1
      if (answer === null) cutOff.push(n)
      if (answer?.status !== 200) continue
      accepted.set(n, idsOf(answer))
      if (n % 20 === 1) refunds.push(reject(sql, accepted.get(n) ?? []))
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, first) => caller(first)))
  await until('sends to be answered', async () => accepted.size > 40)
  await sql.begin(async (tx) => {
    // No call gets a response while the organisation is locked.
    await tx`
      select from app.allowances
      where organisation_id = core.decode_id('org', ${organisation.id}) for update`
    await until('all callers to wait', async () => underWay === CALLERS / 2)
    await untilLocked(sql, 2, 'accept_sms')
    isKilled = true
    await doomed.end('SIGKILL')
  })
  await callers
  t.equal(cutOff.length, CALLERS / 2)

  // Their callers retry: committed calls are replayed, and nothing is paid twice.
  for (const n of cutOff) {
    const answer = await make(survivor.base, organisation, n)
    if (answer.status === 200) accepted.set(n, idsOf(answer))
  }
  // Refunds may have followed the last send, so the remaining credits are spent as well.
  for (let n = -1; ; n -= 3) {
    const answer = await make(survivor.base, organisation, n)
    if (answer.status !== 200) break
    accepted.set(n, idsOf(answer))
  }
  const refunded = (await Promise.all(refunds)).reduce((sum, count) => sum + count, 0)
  const rest = await moneyOf(sql, organisation)
  const ids = [...accepted.values()].flat()
  t.equal(new Set(ids).size, ids.length)
  t.equal(ids.length, rest.accepted, 'every message that was paid has been answered')
  t.ok(refunded > 0)
  t.equal(ids.length - refunded, 300)
  t.match(rest, { smsUsed: 30, smsCredits: 0 })
  const entries = await ledgerOf(sql, organisation)
  t.equal(entries.filter(({ kind }) => kind === 'sms').length, ids.length)
  t.equal(entries.filter(({ kind }) => kind === 'refund').length, refunded)
  t.same(await unbalancedLedgers(sql), [])
  t.equal(await survivor.end('SIGTERM'), 0)
})
