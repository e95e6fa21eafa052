import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

/** 3 MB, the maximum that the API accepts. */
const large = { html: 'a'.repeat(2_000_000), text: 'a'.repeat(1_000_000) }

/** The number of these emails that fit in 24 MB. */
const AT_A_TIME = 8

t.test(
  'a worker has 24 MB of large emails in hand, and small ones pass those that wait',
  async (t) => {
    const { promise: answer, resolve: take } = Promise.withResolvers<void>()
    const provider = createStandIn()
    let inHand = 0
    let most = 0
    provider.onSend = async ({ html }) => {
      if (html === null) return { outcome: 'sent' }
      inHand += 1
      most = Math.max(most, inHand)
      await answer
      inHand -= 1
      return { outcome: 'sent' }
    }
    const { base } = await startTestService(url, {
      roles: ['api', 'worker'],
      createEmailProvider: () => provider,
    })
    const organisation = await createOrganisation(sql)
    const ids: string[] = []
    for (let n = 0; n < AT_A_TIME + 4; n += 1) ids.push(await send(base, organisation, large))
    await until('as many as fit to be in progress', async () => inHand === AT_A_TIME)
    const small = await send(base, organisation)
    await until('the small one', async () => (await messageOf(sql, small)).status === 'sent')
    const waiting = await sql`select from app.messages where status = 'queued' and attempts = 0`
    t.equal(waiting.length, 4, 'the waiting ones were not attempted')

    take()
    for (const id of ids) {
      await until('each large one', async () => (await messageOf(sql, id)).status === 'sent')
    }
    t.equal(most, AT_A_TIME)
    t.equal(provider.handed.length, ids.length + 1, 'each is attempted once')
  },
)

t.test(
  'core.large_bytes(): counts at most 16 MB for an email, and 0 for a small one',
  async (t) => {
    const [row] = await sql`
    select core.large_bytes(65536) as small, core.large_bytes(65537) as large, core.large_bytes(10000000000) as largest`
    t.same(row, { small: 0, large: 65537, largest: 16 * 1024 * 1024 })
  },
)
