import t from 'tap'
import type { Sql } from '../../src/db/client.ts'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { addEvents, createEndpoint, stateOf } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })

/** Creates two endpoints, in the order of their IDs; each event waits for its second attempt at both. */
async function aWorld(events: number) {
  const organisation = await createOrganisation(sql)
  const one = await createEndpoint(sql, organisation)
  const other = await createEndpoint(sql, organisation)
  const added = await addEvents(sql, [one, other], events)
  await sql`update app.webhook_deliveries set attempts = 1, due_at = now() + interval '1 hour'`
  return { organisation, one, other, ids: added.map(({ id }) => id) }
}

/** Records the result of an event's second attempt at an endpoint. */
const finish = (sql: Sql, endpoint: { id: string }, event = '', error: string | null = null) => sql`
  select api.finish_deliveries(jsonb_build_array(jsonb_build_object(
    'endpoint_id', core.decode_id('we', ${endpoint.id}), 'event_id', core.decode_id('evt', ${event}),
    'attempt', 2, 'started_at', clock_timestamp(), 'duration_ms', 5, 'error', ${error}::text)))`

t.test('finish_deliveries and a replay at several endpoints do not deadlock', async (t) => {
  const { organisation, one, other, ids } = await aWorld(2)
  for (const replay of [
    () =>
      sql`select ops.replay_events(${organisation.id}, now() - interval '1 day', now() + interval '1 day')`,
    () => sql`select ops.replay_event(${ids[1] ?? ''})`,
  ]) {
    await sql`update app.webhook_deliveries set attempts = 1, due_at = now() + interval '1 hour'`
    const { replaying } = await sql.begin(async (tx) => {
      await finish(tx as unknown as Sql, other, ids[1])
      const replaying = replay().then(() => 'done')
      replaying.catch(() => undefined)
      await untilLocked(sql, 1, 'replay_event')
      await finish(tx as unknown as Sql, one, ids[1], 'responded 500')
      return { replaying }
    })
    t.equal(await replaying, 'done')
    const [row] = await sql`
        select d.attempts, d.due_at <= now() as is_due from app.webhook_deliveries d
        where d.endpoint_id = core.decode_id('we', ${other.id}) and d.event_id = core.decode_id('evt', ${ids[1] ?? ''})`
    t.same(row, { attempts: 0, isDue: true }, 'an event delivered meanwhile is delivered again')
  }
})

t.test(
  'finish_deliveries: does not wait for a transaction that enables the endpoint',
  async (t) => {
    const { one, other, ids } = await aWorld(1)
    const [event] = ids
    await sql`select ops.disable_webhook_endpoint(${one.id}, 'a test')`
    await sql.begin(async (enabling) => {
      await enabling`select ops.enable_webhook_endpoint(${one.id}, replay => true)`
      await sql.begin(async (tx) => {
        // A wait would also delay the results of other endpoints in the same call.
        await tx`set local lock_timeout = '1ms'`
        await finish(tx as unknown as Sql, one, event)
        await finish(tx as unknown as Sql, other, event)
      })
    })
    const left = await sql`
    select core.encode_id('we', endpoint_id) as id, attempts from app.webhook_deliveries
    where event_id = core.decode_id('evt', ${event ?? ''})`
    t.same([...left], [{ id: one.id, attempts: 0 }], 'it is delivered there again')
    t.match(await stateOf(sql, one), { disabledAt: null, failingSince: null })
  },
)

t.test('delete_webhook_endpoint and finish_deliveries do not deadlock', async (t) => {
  const { one, ids } = await aWorld(3)
  const { deleting } = await sql.begin(async (tx) => {
    await finish(tx as unknown as Sql, one, ids[1])
    const deleting = sql`select ops.delete_webhook_endpoint(${one.id})`.then(() => 'done')
    deleting.catch(() => undefined)
    await untilLocked(sql, 1, 'delete_webhook_endpoint')
    // The rows before and after the locked one, in case either order of locks is used.
    await finish(tx as unknown as Sql, one, ids[0])
    await finish(tx as unknown as Sql, one, ids[2])
    return { deleting }
  })
  t.equal(await deleting, 'done')
})
