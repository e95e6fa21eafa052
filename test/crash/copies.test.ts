import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { endWaiting } from '../fixtures/load.ts'
import { backlogOf, sendBatch } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const MESSAGES = 20
const RECIPIENTS = 50

/** Not among the first ten copies, which start at the same time. */
const HELD_COPY = 25

class Rollback extends Error {}

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)

async function countsOf() {
  const [counts] = await sql<Record<'taken' | 'doubled' | 'sent' | 'delivered', number>[]>`
    select
      (select count(*)::integer from app.sandbox_messages) as taken,
      (select count(*)::integer from app.sandbox_messages where attempts > 1) as doubled,
      (select count(*)::integer from app.messages where sent_at is not null) as sent,
      (select count(*)::integer from app.messages where status = 'delivered') as delivered`
  if (!counts) throw new Error('no counts')
  return counts
}

t.test(
  'worker killed between copies of marketing messages: no copy is lost or sent twice',
  async (t) => {
    const to = Array.from(
      { length: RECIPIENTS },
      (_, place) => `delivered+${place}@sandbox.postgram.test`,
    )
    const emails = Array.from({ length: MESSAGES }, () => ({ class: 'marketing', to }))
    await sendBatch(base, organisation, emails)
    await sql
      .begin(async (tx) => {
        // Another session holds one copy of each message, so the worker waits for its outcome: some copies are
        // accepted, one is not, and others have not started.
        await tx`
        insert into app.sandbox_messages (message_id, copy, kind, reports, taken_at)
        select m.id, ${HELD_COPY}, 'email', '[]', now() from app.messages m`
        const victim = await spawnService(url, 'worker')
        await until('some copies', async () => (await countsOf()).taken >= 10)
        await victim.end('SIGKILL')
        const { taken, sent } = await countsOf()
        t.comment(`${taken} copies of ${MESSAGES * RECIPIENTS} were taken`)
        t.equal(sent, 0)
        await endWaiting(tx)
        throw new Rollback()
      })
      .catch((error) => {
        if (!(error instanceof Rollback)) throw error
      })

    await spawnService(url, 'worker')
    await until('all to be delivered', async () => (await countsOf()).delivered === MESSAGES)
    t.match(await countsOf(), { taken: MESSAGES * RECIPIENTS, doubled: 0, sent: MESSAGES })
    t.equal(await backlogOf(sql, organisation), 0)
  },
)
