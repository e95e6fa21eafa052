import fc from 'fast-check'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { acceptSmsTogether } from '../fixtures/messages.ts'
import {
  createPayer,
  grant,
  ledgerOf,
  reject,
  smsOf,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'

const { url } = await createDatabase()
// One connection, whose clock the test moves.
const sql = connect(url, { max: 1 })
t.teardown(() => sql.end())

/** Longer than any month, so that each step ends a period. */
const PERIOD_MS = 31 * 86_400_000
const MAX_PERIODS = 3
const start = Date.now()
const moveClock = async (period: number) => {
  const now = new Date(start + period * PERIOD_MS).toISOString()
  await sql`select set_config('postgram.now', ${now}, false)`
}
for (let period = 0; period <= MAX_PERIODS; period++) {
  await moveClock(period)
  await sql`select api.make_partitions()`
}

type Item = { segments: number; isSandbox: boolean }
type Send = { mode: 'live' | 'test'; items: Item[] }
type Debit = { credits: number; included: number; period: number }

/** A plain model of the rules for credits and included segments. */
class Account {
  readonly organisation: TestOrganisation
  readonly included: number
  used = 0
  credits = 0
  period = 0
  refunds = 0
  /** What each live message paid, until it is refunded; null for a test message. */
  readonly messages: { id: string; debit: Debit | null }[] = []

  constructor(organisation: TestOrganisation, included: number) {
    this.organisation = organisation
    this.included = included
  }

  /** The credits that each item pays, or null if it is refused. */
  price(send: Send): (Debit | null)[] {
    let left = this.included - this.used
    let credits = send.mode === 'live' ? this.credits : Number.POSITIVE_INFINITY
    let isShort = false
    const debits = send.items.map(({ segments, isSandbox }) => {
      if (isSandbox) return { credits: 0, included: 0, period: this.period }
      isShort ||= segments > left + credits
      if (isShort) return null
      const included = Math.min(segments, left)
      left -= included
      credits -= segments - included
      return { credits: segments - included, included, period: this.period }
    })
    if (send.mode === 'live') {
      this.used = this.included - left
      this.credits = credits
    }
    return debits
  }

  refund(place: number) {
    const message = this.messages[place]
    const debit = message?.debit
    if (!message || !debit) return
    this.credits += debit.credits
    if (debit.period === this.period) this.used -= debit.included
    if (debit.credits + debit.included > 0) this.refunds += 1
    message.debit = null
  }
}

class Grant implements fc.AsyncCommand<Account, null> {
  readonly credits: number
  constructor(credits: number) {
    this.credits = credits
  }
  check = (account: Readonly<Account>) => this.credits !== 0 && account.credits + this.credits >= 0
  async run(account: Account) {
    account.credits += this.credits
    const balance = await grant(sql, account.organisation, this.credits)
    if (balance !== account.credits) throw new Error(`${balance} instead of ${account.credits}`)
    await isBalanced(account)
  }
  toString = () => `grant ${this.credits}`
}

let keys = 0

/** Calls that arrive together. */
class Sends implements fc.AsyncCommand<Account, null> {
  readonly sends: Send[]
  constructor(sends: Send[]) {
    this.sends = sends
  }
  check = () => true
  async run(account: Account) {
    const { organisation } = account
    // The response to a test key does not depend on the other calls of its batch.
    const tests = this.sends.map((send) => (send.mode === 'test' ? account.price(send) : []))
    const expected = this.sends.map((send, n) =>
      send.mode === 'live' ? account.price(send) : tests[n],
    )
    const answers = await acceptSmsTogether(
      sql,
      this.sends.map(({ mode, items }) => ({
        organisation,
        mode,
        key: `key ${keys++}`,
        isBatch: items.length > 1,
        messages: items.map(({ segments, isSandbox }) =>
          smsOf(segments, { is_sandbox: isSandbox }),
        ),
      })),
    )
    for (const [n, { code, body }] of answers.entries()) {
      const { mode, items } = this.sends[n] as Send
      const parsed = JSON.parse(body ?? '{}')
      const results = parsed.results ?? [{ data: code ? undefined : parsed, error: { code } }]
      for (const [index, debit] of (expected[n] ?? []).entries()) {
        const { data, error } = results[index]
        const outcome = data?.credits ?? error.code
        if (outcome !== (debit?.credits ?? 'insufficient_credits')) {
          throw new Error(`${outcome} for item ${index} of ${JSON.stringify({ mode, items })}`)
        }
        if (debit) account.messages.push({ id: data.id, debit: mode === 'live' ? debit : null })
      }
    }
    await isBalanced(account)
  }
  toString = () => `send ${JSON.stringify(this.sends)}`
}

class Refund implements fc.AsyncCommand<Account, null> {
  readonly places: number[]
  constructor(places: number[]) {
    this.places = places
  }
  check = () => true
  async run(account: Account) {
    const ids = this.places.flatMap((place) => account.messages[place]?.id ?? [])
    for (const place of this.places) account.refund(place)
    await reject(sql, ids)
    await sql`select core.refund_sms(array(select core.decode_id('sm', i) from unnest(${ids}::text[]) i
      join app.messages m on m.id = core.decode_id('sm', i) and m.status = 'rejected'))`
    await isBalanced(account)
  }
  toString = () => `refund ${this.places}`
}

class EndPeriod implements fc.AsyncCommand<Account, null> {
  check = (account: Readonly<Account>) => account.period < MAX_PERIODS
  async run(account: Account) {
    account.period += 1
    account.used = 0
    await moveClock(account.period)
    await isBalanced(account)
  }
  toString = () => 'end of period'
}

/** Throws unless ops.ledger_check finds every account balanced. */
async function isBalanced(account: Account) {
  const { id } = account.organisation
  const wrong = (await unbalancedLedgers(sql)).filter(({ organisation }) => organisation === id)
  if (wrong.length > 0) throw new Error(JSON.stringify(wrong))
  const [found] = await sql`
    select sms_used, sms_credits from ops.organisations where id = ${id}`
  const { used, credits, refunds } = account
  const ledger = await ledgerOf(sql, account.organisation)
  const sum = ledger.reduce((total, entry) => total + entry.credits, 0)
  const given = ledger.filter(({ kind }) => kind === 'refund').length
  const seen = JSON.stringify({ ...found, sum, given })
  const wanted = JSON.stringify({
    smsUsed: used,
    smsCredits: credits,
    sum: credits,
    given: refunds,
  })
  if (seen !== wanted) throw new Error(`${seen} instead of ${wanted}`)
}

const item = fc.record({
  segments: fc.integer({ min: 1, max: 4 }),
  isSandbox: fc.constantFrom(false, false, false, true),
})
const send: fc.Arbitrary<Send> = fc.record({
  mode: fc.constantFrom('live', 'live', 'live', 'test'),
  items: fc.array(item, { minLength: 1, maxLength: 5 }),
})

t.test('any order of grants, sends, refunds and period ends balances', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(12),
      fc.commands<Account, null, false>(
        [
          fc.integer({ min: -8, max: 16 }).map((credits) => new Grant(credits)),
          fc.array(send, { minLength: 1, maxLength: 4 }).map((sends) => new Sends(sends)),
          fc.array(fc.nat(12), { maxLength: 6 }).map((places) => new Refund(places)),
          fc.constant(new EndPeriod()),
        ],
        { maxCommands: 25 },
      ),
      async (included, commands) => {
        await moveClock(0)
        const organisation = await createPayer(sql, { included })
        const setup = () => ({ model: new Account(organisation, included), real: null })
        await fc.asyncModelRun(setup, commands)
      },
    ),
    { numRuns: 60 },
  )
})
