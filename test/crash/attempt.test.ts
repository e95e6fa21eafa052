import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { fiveHundred } from '../fixtures/load.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const messages = fiveHundred(url, sql, base)

t.test(
  'worker killed between an attempt and its record: the provider is asked, the message is not sent again',
  async (t) => {
    const victim = await messages.startWorker()
    // The provider accepts everything and reports nothing; no response of it can be recorded.
    await sql`revoke execute on function api.finish_messages, api.sandbox_report from postgram_service`
    const organisation = await messages.queue('delivered')
    await messages.all(organisation, 'taken')
    await victim.end('SIGKILL')
    t.match(await messages.countsOf(organisation), { sent: 0, inHand: messages.MESSAGES })

    await sql`grant execute on function api.finish_messages to postgram_service`
    const next = await messages.startWorker()
    const counts = await messages.all(organisation, 'sent')
    t.match(counts, { ambiguous: messages.MESSAGES, doubled: 0 })
    await sql`grant execute on function api.sandbox_report to postgram_service`
    await messages.checkNothingLost(t, organisation)
    t.equal(await next.end('SIGTERM'), 0)
  },
)
