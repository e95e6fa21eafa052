import fc from 'fast-check'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import {
  createPayer,
  grant,
  reject,
  smsOf,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { startApiAt, startTestService } from '../fixtures/service.ts'

const { url, sql: owners } = await createDatabase()
// The start of a service creates what every service needs.
await startTestService(url, { roles: ['api'] })
// One connection, whose clock the test moves.
const sql = connect(url, { max: 1 })
t.teardown(() => sql.end())

/** Where the clock goes: inside a period, to its end exactly, past a whole one, to its last moment. */
const MOMENTS = [
  '2031-01-31T10:00:00.000Z',
  '2031-02-10T00:00:00.000Z',
  '2031-02-28T10:00:00.000Z',
  '2031-03-15T00:00:00.000Z',
  '2031-05-20T00:00:00.000Z',
  '2031-05-31T09:59:59.999Z',
  '2031-05-31T10:00:00.000Z',
] as const
/** The starts of periods after one that started on a 31st. */
const STARTS = ['01-31', '02-28', '03-31', '04-30', '05-31', '06-30'].map(
  (day) => `2031-${day}T10:00:00.000Z`,
)

const bases: string[] = []
for (const moment of MOMENTS) bases.push((await startApiAt(owners, url, moment)).base)

type Terms = { priceRand: number; emailsIncluded: number; smsIncluded: number }
type Period = {
  emailsUsed: number
  smsUsed: number
  creditsGranted: number
  creditsSpent: number
  creditsRefunded: number
  planChanges: string[]
  /** The values at the end of the period. */
  bill: (Terms & { plan: string }) | null
}
type Paid = { id: string; credits: number; included: number; period: number }

const emptyPeriod = (): Period => ({
  emailsUsed: 0,
  smsUsed: 0,
  creditsGranted: 0,
  creditsSpent: 0,
  creditsRefunded: 0,
  planChanges: [],
  bill: null,
})

/** An organisation, with a model of its account that is kept from the responses. */
class Notebook {
  readonly organisation: TestOrganisation
  readonly plans: Map<string, Terms>
  plan: string
  moment = 0
  readonly periods = [emptyPeriod()]
  paid: Paid[] = []

  constructor(organisation: TestOrganisation, plans: Map<string, Terms>, plan: string) {
    this.organisation = organisation
    this.plans = plans
    this.plan = plan
  }

  get time() {
    return MOMENTS[this.moment] as string
  }
  get base() {
    return bases[this.moment] as string
  }
  get place() {
    return this.periods.length - 1
  }
  get period() {
    return this.periods[this.place] as Period
  }
  get terms() {
    return this.plans.get(this.plan) as Terms
  }
  get credits() {
    return this.periods.reduce(
      (sum, one) => sum + one.creditsGranted - one.creditsSpent + one.creditsRefunded,
      0,
    )
  }

  async moveClock(moment: number) {
    this.moment = moment
    await sql`select set_config('postgram.now', ${this.time}, false)`
    while ((STARTS[this.periods.length] as string) <= this.time) {
      this.period.bill = { ...this.terms, plan: this.plan }
      this.periods.push(emptyPeriod())
    }
  }
}

type Step = (notes: Notebook) => Promise<unknown>

const email = (recipients: number): Step =>
  async function email(notes) {
    const { domain, liveKey, testKey } = notes.organisation
    const to = Array.from({ length: recipients }, (_, n) => `person${n}@c.example`)
    const { status } = await post(`${notes.base}/v1/emails`, liveKey, anEmail(domain, { to }))
    const left = notes.terms.emailsIncluded - notes.period.emailsUsed
    if (status !== (recipients <= left ? 200 : 402)) throw new Error(`${status} with ${left} left`)
    if (status === 200) notes.period.emailsUsed += recipients
    await post(`${notes.base}/v1/emails`, testKey, anEmail(domain, { to }))
  }

const sms = (segments: number[]): Step =>
  async function sms(notes) {
    const { liveKey } = notes.organisation
    const messages = segments.map((count) => smsOf(count))
    const { status, json } = await post(`${notes.base}/v1/sms/batch`, liveKey, { messages })
    if (status !== 200) throw new Error(JSON.stringify(json))
    for (const [n, { ok, data, error }] of json.results.entries()) {
      if (!ok && error.code === 'insufficient_credits') continue
      if (!ok) throw new Error(JSON.stringify(error))
      const included = (segments[n] ?? 0) - data.credits
      notes.period.smsUsed += included
      notes.period.creditsSpent += data.credits
      notes.paid.push({ id: data.id, credits: data.credits, included, period: notes.place })
    }
  }

const refund = (places: number[]): Step =>
  async function refund(notes) {
    const chosen = notes.paid.filter((_, place) => places.includes(place))
    await reject(
      sql,
      chosen.map(({ id }) => id),
    )
    for (const { credits, included, period } of chosen) {
      notes.period.creditsRefunded += credits
      // Included segments of an ended period are lost.
      if (period === notes.place) notes.period.smsUsed -= included
    }
    notes.paid = notes.paid.filter((one) => !chosen.includes(one))
  }

const give = (credits: number): Step =>
  async function give(notes) {
    if (credits === 0 || notes.credits + credits < 0) return
    notes.period.creditsGranted += credits
    const balance = await grant(sql, notes.organisation, credits)
    if (balance !== notes.credits) throw new Error(`${balance} instead of ${notes.credits}`)
  }

const setPlan = (choice: number): Step =>
  async function setPlan(notes) {
    const plan = [...notes.plans.keys()][choice % notes.plans.size] as string
    await sql`select ops.set_plan(${notes.organisation.id}, ${plan})`
    if (plan !== notes.plan) {
      notes.period.planChanges.push(`${notes.time} from ${notes.plan} to ${plan}`)
    }
    notes.plan = plan
  }

const setTerms = (terms: Terms): Step =>
  async function setTerms(notes) {
    notes.plans.set(notes.plan, terms)
    await sql`
      select ops.set_plan_terms(${notes.plan}, price_rand => ${terms.priceRand},
        emails_included => ${terms.emailsIncluded}, sms_included => ${terms.smsIncluded})`
  }

const move = (by: number): Step =>
  async function move(notes) {
    await notes.moveClock(Math.min(notes.moment + by, MOMENTS.length - 1))
  }

const close: Step = async function close() {
  await sql`select api.close_periods()`
}

/** Returns the sums of each period in the ledger and in the messages. */
const sources = {
  ledger: (id: string, start: string, end: string) => sql`
    select
      coalesce(-sum(l.included), 0)::integer as sms_used,
      coalesce(sum(l.credits) filter (where l.kind = 'grant'), 0)::integer as credits_granted,
      coalesce(-sum(l.credits) filter (where l.kind = 'sms'), 0)::integer as credits_spent,
      coalesce(sum(l.credits) filter (where l.kind = 'refund'), 0)::integer as credits_refunded
    from ops.credit_ledger l
    where l.organisation = ${id} and l.created_at >= ${start} and l.created_at < ${end}
      and l.period_start = ${start}`,
  messages: (id: string, start: string, end: string) => sql`
    with mine as (
      select m.*, m.created_at >= ${start} and m.created_at < ${end} as is_accepted,
        r.occurred_at >= ${start} and r.occurred_at < ${end} as is_refunded
      from app.messages m
      left join app.events r on r.message_id = m.id and r.type = 'rejected'
      where m.organisation_id = core.decode_id('org', ${id}) and m.mode = 'live'
    )
    select
      coalesce(sum(m.recipients) filter (where m.channel = 'email' and m.is_accepted), 0)::integer as emails_used,
      coalesce(sum(m.segments - m.credits)
        filter (where m.is_accepted and m.is_refunded is not true), 0)::integer as sms_used,
      coalesce(sum(m.credits) filter (where m.is_accepted), 0)::integer as credits_spent,
      coalesce(sum(m.credits) filter (where m.is_refunded), 0)::integer as credits_refunded
    from mine m`,
}

const numbers = (row: Record<string, unknown> | undefined) =>
  Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [
      name,
      value instanceof Date
        ? value.toISOString()
        : /^-?\d+$/.test(String(value))
          ? Number(value)
          : value,
    ]),
  )

/** Throws unless `seen` has everything of `wanted`. */
function isSame(seen: Record<string, unknown>, wanted: Record<string, unknown>, what: string) {
  for (const [name, value] of Object.entries(wanted)) {
    if (seen[name] !== value) throw new Error(`${what}: ${name} is ${seen[name]}, not ${value}`)
  }
}

/** Throws unless statements, ledger, messages and GET /v1/usage equal the notebook. */
async function agree(notes: Notebook, isClosed: boolean) {
  const { id, liveKey } = notes.organisation
  let creditsBefore = 0
  for (const [place, period] of notes.periods.entries()) {
    const [start = '', end = ''] = STARTS.slice(place)
    const isPresent = place === notes.place
    const { planChanges, bill, ...moved } = period
    const creditsAfter =
      creditsBefore + moved.creditsGranted - moved.creditsSpent + moved.creditsRefunded
    const { priceRand, emailsIncluded, smsIncluded, plan } = bill ?? {
      ...notes.terms,
      plan: notes.plan,
    }
    const account = { plan, priceRand, emailsIncluded, smsIncluded, creditsAfter }
    const statement = {
      ...moved,
      ...account,
      periodStart: start,
      periodEnd: end,
      planChanges: planChanges.join(', ') || null,
      creditsBefore,
      ...(isClosed ? { isClosed: !isPresent } : {}),
    }
    const at = isPresent ? null : new Date(Date.parse(end) - 1).toISOString()
    const [said] = await sql`select s.* from ops.statement(${id}, ${at}) s`
    isSame(numbers(said), statement, `the statement of ${start}`)

    const { emailsUsed: _, ...paid } = moved
    isSame(numbers((await sources.ledger(id, start, end))[0]), paid, `the ledger of ${start}`)
    const { creditsGranted: __, ...sent } = moved
    isSame(numbers((await sources.messages(id, start, end))[0]), sent, `the messages of ${start}`)
    if (isClosed && !isPresent) {
      const [row] = await sql`
        select * from ops.statements where organisation = ${id} and period_start = ${start}`
      const { emailsUsed, smsUsed } = moved
      isSame(numbers(row), { ...account, emailsUsed, smsUsed, periodEnd: end }, 'ops.statements')
    }
    creditsBefore = creditsAfter
  }

  const { json: usage } = await get(`${notes.base}/v1/usage`, liveKey)
  const { emailsUsed, smsUsed } = notes.period
  const { emailsIncluded, smsIncluded, priceRand } = notes.terms
  isSame(usage.plan, { id: notes.plan, priceRand }, 'usage')
  isSame(usage.period, { start: STARTS[notes.place], end: STARTS[notes.place + 1] }, 'usage')
  isSame(usage.emails, { used: emailsUsed, included: emailsIncluded }, 'usage of email')
  const sms = { used: smsUsed, included: smsIncluded, credits: notes.credits }
  isSame(usage.sms, sms, 'usage of SMS')
  const wrong = (await unbalancedLedgers(sql)).filter(({ organisation }) => organisation === id)
  if (wrong.length > 0) throw new Error(JSON.stringify(wrong))
}

const terms: fc.Arbitrary<Terms> = fc.record({
  priceRand: fc.nat(999),
  emailsIncluded: fc.nat(12),
  smsIncluded: fc.nat(8),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 4 }).map(email) },
  {
    weight: 4,
    arbitrary: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 }).map(sms),
  },
  { weight: 2, arbitrary: fc.array(fc.nat(6), { maxLength: 3 }).map(refund) },
  { weight: 2, arbitrary: fc.integer({ min: -6, max: 12 }).map(give) },
  { weight: 1, arbitrary: fc.nat(2).map(setPlan) },
  { weight: 1, arbitrary: terms.map(setTerms) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }).map(move) },
  { weight: 1, arbitrary: fc.constant(close) },
)

let runs = 0

t.test(
  'ledger: statements, ledger, messages and usage agree after any order of events',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(terms, { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 5, maxLength: 30 }),
        async (offered, steps) => {
          runs += 1
          const plans = new Map(offered.map((one, n) => [`run${runs}-${n}`, one]))
          const plan = `run${runs}-0`
          await sql`select set_config('postgram.now', ${MOMENTS[0]}, false)`
          for (const [id, { priceRand, emailsIncluded, smsIncluded }] of plans) {
            await sql`select ops.create_plan(${id}, ${id}, ${priceRand}, ${emailsIncluded}, ${smsIncluded}, 100)`
          }
          const organisation = await createPayer(sql, {})
          await sql`
          update app.organisations set plan_id = ${plan} where id = core.decode_id('org', ${organisation.id})`
          const notes = new Notebook(organisation, plans, plan)
          for (const take of steps) await take(notes)
          await agree(notes, false)
          await sql`select api.close_periods()`
          await agree(notes, true)
        },
      ),
      { numRuns: 30 },
    )
  },
)
