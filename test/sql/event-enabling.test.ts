import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { createEndpoint, waitingFor } from '../fixtures/webhooks.ts'

// Only the API runs: the test acts as the worker and the provider.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

t.test(
  'enable_webhook_endpoint: replays the event of a change that was not committed yet',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const endpoint = await createEndpoint(sql, organisation, { types: ['email.sent'] })
    await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
    const { id } = await messageOf(sql, await send(base, organisation))
    await sql`select api.start_emails(${[id]}::uuid[])`

    const { enabled } = await sql.begin(async (tx) => {
      const results = JSON.stringify([{ id, provider: 'stand-in', outcome: 'sent' }])
      await tx`select api.finish_messages(${results}::text::jsonb)`
      let isDone = false
      const enabled =
        sql`select ops.enable_webhook_endpoint(${endpoint.id}, replay => true) as count`
          .then((rows) => Number(rows[0]?.count))
          .finally(() => {
            isDone = true
          })
      enabled.catch(() => undefined)
      await until('enabling to wait or to end', async () => {
        if (isDone) return true
        const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%enable_webhook_endpoint%'`
        return row
      })
      return { enabled }
    })
    t.equal(await enabled, 1)
    t.strictSame(await waitingFor(sql, endpoint), ['email.sent'])
  },
)

t.test('enable_webhook_endpoint: a change during it is delivered once', async (t) => {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
  const { id } = await messageOf(sql, await send(base, organisation))
  await sql`select api.start_emails(${[id]}::uuid[])`

  const { finished } = await sql.begin(async (tx) => {
    await tx`select ops.enable_webhook_endpoint(${endpoint.id}, replay => true)`
    const results = JSON.stringify([{ id, provider: 'stand-in', outcome: 'sent' }])
    let isDone = false
    const finished = sql`select api.finish_messages(${results}::text::jsonb)`.then(() => {
      isDone = true
    })
    finished.catch(() => undefined)
    await until('the change to wait or to end', async () => {
      if (isDone) return true
      const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%finish_messages%'`
      return row
    })
    return { finished }
  })
  await finished
  t.strictSame(await waitingFor(sql, endpoint), ['email.sent'])
})
