import t from 'tap'
import type { Sql } from '../../src/db/client.ts'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { anEmail, anSms } from '../fixtures/http.ts'
import { acceptSmsTogether, acceptTogether } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

// Postgres may evaluate an expression that a query uses twice as often, or before the condition on which it depends.
// No result shows that; only the counters of the transaction do.

const { sql } = await createDatabase()
const organisation = await createOrganisation(sql)

/** How often the marketing rules are evaluated in `work`, which is rolled back. */
async function evaluated(work: (tx: Sql) => Promise<unknown>) {
  const calls = async (tx: Sql) => {
    const [row] = await tx<{ calls: number }[]>`
      select coalesce(pg_stat_get_xact_function_calls('core.marketing_obstacle'::regproc), 0)::integer as calls`
    return row?.calls ?? -1
  }
  let count = -1
  await rolledBack(sql, async (rolled: Tx) => {
    const tx = rolled as unknown as Sql
    await tx`set local track_functions = 'all'`
    // The counter may still have calls of an earlier transaction.
    const before = await calls(tx)
    await work(tx)
    count = (await calls(tx)) - before
  })
  return count
}

const acceptTwo = (tx: Sql, mode: 'live' | 'test', sms: Record<string, unknown>) =>
  acceptSmsTogether(tx, [
    { organisation, mode, key: 'caller:rules', isBatch: true, messages: [anSms(sms), anSms(sms)] },
  ])

const TRANSACTIONAL = { class: 'transactional' }
const MARKETING = { class: 'marketing' }

t.test('api.accept_sms: live SMS, does not evaluate the marketing rules', async (t) => {
  t.equal(await evaluated((tx) => acceptTwo(tx, 'live', TRANSACTIONAL)), 0)
  t.equal(await evaluated((tx) => acceptTwo(tx, 'live', MARKETING)), 0)
})

t.test('api.accept_sms: test SMS, evaluates the marketing rules for marketing only', async (t) => {
  t.equal(await evaluated((tx) => acceptTwo(tx, 'test', TRANSACTIONAL)), 0)
  t.equal(await evaluated((tx) => acceptTwo(tx, 'test', MARKETING)), 2)
})

t.test('api.start_sms: SMS, evaluates the marketing rules for marketing only', async (t) => {
  const start = (sms: Record<string, unknown>) =>
    evaluated(async (tx) => {
      await acceptTwo(tx, 'live', sms)
      await tx`select api.start_sms(array(select m.id from app.messages m))`
    })
  t.equal(await start(TRANSACTIONAL), 0)
  t.equal(await start(MARKETING), 2)
})

t.test('api.start_emails: an email, looks up the suppressions of its recipient once', async (t) => {
  const scans = async (tx: Sql) => {
    const [row] = await tx<{ scans: number }[]>`
      select pg_stat_get_xact_numscans('app.suppressions_one_per_address'::regclass)::integer as scans`
    return row?.scans ?? -1
  }
  await rolledBack(sql, async (rolled: Tx) => {
    const tx = rolled as unknown as Sql
    const email = anEmail(organisation.domain)
    await acceptTogether(tx, [{ organisation, key: 'caller:once', email }])
    const before = await scans(tx)
    const started = await tx`
      select s.id from api.start_emails(array(select m.id from app.messages m)) s`
    t.equal(started.length, 1)
    t.equal((await scans(tx)) - before, 1)
  })
})
